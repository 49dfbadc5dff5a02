// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bary/cli/command.h"

namespace bary {

Command data_command();

}  // namespace bary
