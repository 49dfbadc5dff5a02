// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bary/cli/command.h"

namespace bary {

Command lab_list_command();
Command lab_run_command();
Command lab_report_command();

}  // namespace bary
