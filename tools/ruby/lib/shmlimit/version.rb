# frozen_string_literal: true

# SPDX-License-Identifier: BSD-2-Clause
module Shmlimit
  VERSION = "1.0.0"
end
