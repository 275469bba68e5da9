# frozen_string_literal: true

# The laws of Shmlimit::Store on two hosts, which are segments, with one backend.
#
# SPDX-License-Identifier: BSD-2-Clause
require "shmlimit/store"
require "tap"

SEGMENT = ENV.fetch("SEGMENT")
BACKEND = ENV.fetch("BACKEND")
LIMIT = 30

def store(host, **options)
  Shmlimit::Store.new("#{SEGMENT}.#{host}", slots: 64, **{ backend: BACKEND, deadline_ms: 5000, **options })
end

# Two hosts of two processes each. One of them, which is its host's agent, is killed after 5 requests, and replaced.
reader, writer = IO.pipe
start = lambda do |host, times|
  fork do
    counts = store(host)
    times.times { writer.write(counts.increment("crowd", 1, expires_in: 3600) <= LIMIT ? "1" : "0") }
    sleep
  end
end
first = start["one", 5]
told = reader.read(5)
Process.kill(:KILL, first)
rest = %w[one two one two].map { |host| start[host, 20] }
told += reader.read(80)
rest.each { |pid| Process.kill(:KILL, pid) }
Process.waitall
is(told.count("1"), LIMIT, "two hosts of several processes, one of them killed, admit exactly the limit")

hosts = [store("one"), store("two")]
is([0, 1, 0, 1].map { |host| hosts[host].increment("a", 1, expires_in: 3600) }, [1, 2, 3, 4], "increment counts on all hosts")
is([hosts[1].read("a"), hosts[1].exist?("a"), hosts[1].read("none")], [4, true, nil], "a host knows what it was answered")
is([hosts[0].delete("a"), hosts[0].increment("a")], [true, 1], "delete is one on all hosts")
is([hosts[0].write("w", 7, expires_in: 3600), hosts[1].increment("w"), hosts[0].write("w", 0), hosts[0].increment("w")], [true, 8, true, 1],
   "write sets a count on all hosts")
is([hosts[0].clear, hosts[0].increment("a"), hosts[0].increment("w")], [true, 1, 1], "clear is one on all hosts")
is(raised { hosts[0].decrement("a") }&.first, ArgumentError, "there is no decrement")
is(raised { hosts[0].increment("a", 1, expires_in: 10**12) }&.first, ArgumentError, "a longer expires_in than a count can live is refused")
is(hosts[0].increment("k" * 5000), 1, "a name may have any length")
threads = Array.new(4) { |n| Thread.new { Array.new(20) { hosts[n % 2].increment("threads") } } }
is(threads.flat_map(&:value).sort, (1..80).to_a, "threads of two hosts get each count once")
reader, writer = IO.pipe
pids = Array.new(4) { |n| fork { writer.write(Array.new(20) { "#{hosts[n % 2].increment('fork')}\n" }.join); exit!(0) } }
pids.each { |pid| Process.wait(pid) }
writer.close
is(reader.read.split.map(&:to_i).sort, (1..80).to_a, "forked processes of two hosts get each count once")
is([eval(File.read(ENV.fetch("README"))).increment("readme"), hosts[1].increment("readme")], [1, 2], # rubocop:disable Security/Eval
   "README: the store counts on all hosts")
Shmlimit::Limiter.open("#{SEGMENT}.one") { |l| l.rule_remove("store") }
is(hosts[0].increment("a"), 2, "a rule that was removed is set again")
Shmlimit.destroy("#{SEGMENT}.one")
ok(within { hosts[0].increment("b"); File.exist?("#{ENV['SHM']}#{SEGMENT}.one") }, "a segment that was destroyed is created again")

nobody = { backend: "unix:///#{SEGMENT}/nobody", deadline_ms: 50 }
errors = []
handler = ->(method:, returning:, exception:) { errors << [method, returning, exception.errno] }
is([store("deny", **nobody).increment("k") > Shmlimit::Store::MAX, store("allow", on_failure: :allow, **nobody).increment("k"),
    store("error", on_failure: :error, error_handler: handler, **nobody).increment("k")], [true, 0, nil], "without the backend on_failure decides")
is(errors, [[:increment, nil, Errno::EHOSTDOWN::Errno]], "on_failure error goes to the handler")
[{ on_failure: :local }, { backend: nil, deadline_ms: 5 }, { perhaps: 1 }].each do |wrong|
  is(raised { store("wrong", **wrong) }&.first, ArgumentError, "wrong options are refused: #{wrong.keys.join(', ')}")
end
is(raised { store("wrong", backend: "http://h") }&.first, Shmlimit::Error, "a wrong URL is refused")
done_testing
