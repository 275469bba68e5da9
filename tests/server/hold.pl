# hold.pl PORT PATH STATUS [FIELD...]: request it, and write the status to the file; then hold the request open: read the body only after a SIGUSR1.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;
use IO::Socket::INET;

my ($port, $path, $status, @fields) = @ARGV;
my $go_on = 0;
$SIG{USR1} = sub { $go_on = 1 };
my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!";
print $server "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", (map { "$_\r\n" } @fields), "\r\n";
my $line = <$server> // '';
open my $out, '>', "$status.new" or die "$status: $!";
print $out $line =~ /^HTTP\/1\.1 (\d+)/ ? "$1\n" : "none\n";
close $out;
rename "$status.new", $status or die "$status: $!";
select undef, undef, undef, 0.02 until $go_on;
1 while sysread $server, my $bytes, 1 << 20;
