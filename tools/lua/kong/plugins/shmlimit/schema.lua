-- The configuration of Kong's plugin shmlimit.
--
-- SPDX-License-Identifier: BSD-2-Clause
local typedefs = require "kong.db.schema.typedefs"
local plugin = require "resty.shmlimit.plugin"

return {
	name = "shmlimit",
	fields = {
		{ protocols = typedefs.protocols_http },
		{ config = {
			type = "record",
			fields = {
				{ spec = { type = "string", required = true } },
				-- One for each limit: "ip", "consumer", "credential" or "header:NAME".
				{ keys = { type = "array", required = true, default = { "ip" },
					elements = { type = "string", match_any = {
						patterns = { "^ip$", "^consumer$", "^credential$", "^header:.+$" },
						err = "must be ip, consumer, credential or header:NAME",
					} } } },
			},
			custom_validator = plugin.check,
		} },
	},
}
