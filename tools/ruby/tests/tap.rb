# frozen_string_literal: true

# tap.rb: the verbs of tap.sh, for Ruby.
#
# SPDX-License-Identifier: BSD-2-Clause
$tap_count = 0
$tap_failed = 0

def ok(held, title)
  $tap_count += 1
  $tap_failed += 1 unless held
  puts "#{held ? 'ok' : 'not ok'} #{$tap_count} - #{title}"
  warn "# failed at #{caller_locations.find { |at| at.path != __FILE__ }}" unless held
end

def is(got, want, title)
  ok(got == want, title)
  warn "# got:  #{got.inspect}\n# want: #{want.inspect}" unless got == want
end

# What the block raises: its class, and its message.
def raised
  yield
  nil
rescue StandardError => e
  [e.class, e.message]
end

# Repeat the block until it is true, for a minute at most.
def within
  1200.times do
    return true if yield

    sleep 0.05
  end
  false
end

def done_testing
  puts "1..#{$tap_count}"
  exit!($tap_failed.zero? ? 0 : 1) if $stdout.flush
end
