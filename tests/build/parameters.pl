# parameters.pl FOLDER: the functions in lib/ and tools/ that have seven parameters or more, but are neither public nor
# of a type that is not theirs to choose.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my $folder = shift;
my $most = 6;
my %prescribed = (
	reply_to_request => "libmicrohttpd's MHD_AccessHandlerCallback",
);

# The functions that a file declares or defines at its left margin: [name, line, how many parameters].
sub functions {
	my ($path) = @_;
	my @found;
	open my $in, '<', $path or die "$path: $!\n";
	my $text = do { local $/; <$in> };
	$text =~ s{/\*.*?\*/|"(?:[^"\\\n]|\\.)*"}{ (my $lines = $&) =~ tr/\n//cd; " $lines" }gse;
	while ($text =~ /^(?!\s|#|\})[^;{}=#]*?\b(\w+)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*(?=[;{])/gm) {
		my ($name, $list, $line) = ($1, $2, 1 + (substr($text, 0, $-[1]) =~ tr/\n//));
		1 while $list =~ s/\([^()]*\)//;
		push @found, [$name, $line, 1 + ($list =~ tr/,//)];
	}
	return @found;
}

my %public = map { map { ($_->[0] => 1) } functions($_) } glob "$folder/include/*.h";
my @files = split /\n/, `find "$folder/lib" "$folder/tools" -name '*.[ch]' ! -path '*/tests/*' | sort`;
for my $path (@files) {
	for (functions($path)) {
		my ($name, $line, $count) = @$_;
		next if $count <= $most || $public{$name} || $prescribed{$name};
		print substr($path, 1 + length $folder), ":$line: $name has $count parameters\n";
	}
}
