# mutate.pl TABLE: the names of all mutants, a line each with their file and tests.
# mutate.pl TABLE FOLDER: the names of those that change their file below FOLDER; of the others, why not.
# mutate.pl TABLE NAME FOLDER: make the change of this one to the file below FOLDER.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my $table = shift;
my $folder = pop;
my $wanted = shift;
my @mutants;

open my $lines, '<', $table or die "$table: $!\n";
while (<$lines>) {
	next if /^(#.*)?$/;
	if (/^-(.*\n)/s) {
		$mutants[-1]{from} .= $1;
	} elsif (/^\+(.*\n)/s) {
		$mutants[-1]{to} .= $1;
	} else {
		my ($name, $file) = split;
		push @mutants, { line => $_, name => $name, file => $file, from => '', to => '' };
	}
}

# The text of its file, as it is and with the change.
sub change {
	my ($m) = @_;
	my $path = "$folder/$m->{file}";
	local $/;
	open my $in, '<', $path or die "$path: $!\n";
	my $before = my $after = <$in>;
	my ($from, $to) = map { s/\n\z//r } $m->{from}, $m->{to}; # the last line may go on
	# However it is broken into lines.
	my $pattern = join '\s+', map quotemeta, split ' ', $from;
	my $n = () = $before =~ /[ \t]*$pattern/g;
	die "$m->{name}: what it takes out stands $n times in $path, not once\n" if $n != 1;
	$after =~ s/[ \t]*$pattern/$to/;
	die "$m->{name} changes nothing in $path\n" if $after eq $before;
	return $after;
}

if (!defined $folder) {
	print $_->{line} for @mutants;
} elsif (!defined $wanted) {
	for my $m (@mutants) {
		print eval { change($m); "$m->{name}\n" } // do { warn $@; '' };
	}
} else {
	my ($m) = grep { $_->{name} eq $wanted } @mutants or die "$wanted: no such mutant\n";
	my $after = change($m);
	open my $out, '>', "$folder/$m->{file}" or die "$folder/$m->{file}: $!\n";
	print $out $after;
}
