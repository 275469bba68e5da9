# mutate.pl TABLE: the names of all mutants, a line each with their file and tests.
# mutate.pl TABLE NAME FOLDER: make the change of this one to the file below FOLDER.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my ($table, $wanted, $folder) = @ARGV;
my ($file, $from, $to) = ('', '', '');

open my $mutants, '<', $table or die "$table: $!\n";
while (<$mutants>) {
	next if /^(#.*)?$/;
	if (/^-(.*\n)/s) {
		$from .= $1 if $file;
	} elsif (/^\+(.*\n)/s) {
		$to .= $1 if $file;
	} else {
		print unless $wanted;
		my ($name, $path) = split;
		$file = $wanted && $name eq $wanted ? $path : '';
		$folder .= "/$path" if $file;
	}
}
exit unless $wanted;
die "$wanted: no such mutant\n" unless $from;
# The last line may go on.
chomp($from, $to);
local $/;
open my $in, '<', $folder or die "$folder: $!\n";
my $text = <$in>;
# However it is broken into lines.
my $pattern = join '\s+', map quotemeta, split ' ', $from;
my $n = () = $text =~ /[ \t]*$pattern/g;
die "$wanted: what it takes out stands $n times in $folder, not once\n" if $n != 1;
$text =~ s/[ \t]*$pattern/$to/;
open my $out, '>', $folder or die "$folder: $!\n";
print $out $text;
