# layers.pl SOURCE BUILD: what is wrong with the layers of the libraries below SOURCE/lib, by the symbols of their
# object files below BUILD/lib, and which files of the command call each other in a circle. Prints a line for each mistake. The rooms and their order, from the bottom, are the
# list in SOURCE/lib/README.md.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my ($source, $build) = @ARGV;
my (%rank, %room, %header, %named, %defined, %needs, %calls, %included);

sub lines { open my $in, '<', $_[0] or die "$_[0]: $!\n"; my @l = <$in>; return @l }

# A file as the lines of the output name it.
sub short { $_[0] =~ s/^lib\///r }

# An annex has its own, between those that it uses and those that use it.
my @list = map { my $line = $_; $line =~ /^- `gate\/`/ ? ((map { lines($_) } glob "$source/lib/*/README.md"), $line) : $line } lines("$source/lib/README.md");
for (@list) {
	next unless /^- `([a-z_\/]+)\/`:/;
	print "room $1: it is twice in the list of lib/README.md\n" if exists $rank{$1};
	$rank{$1} = keys %rank;
	print "room $1: there is no such folder\n" unless -d "$source/lib/$1";
}

# The folder of an algorithm is a part of algorithm/; but its first try is as high as decide/, and what it exports is as
# high as api/. The list of algorithms and their traits are as low as base/.
sub room_of {
	my ($room, $file) = @_;

	return $room unless $room =~ /^algorithm(?:\/|$)/;
	return 'base' if $file =~ /\/(?:list\.h|(?:\w+_)?traits\.[ch])$/;
	return $room unless $room =~ /\//;
	return 'decide' if $file =~ /\/fast_[^\/]*$/;
	return 'api' if grep { /^EXPORT / } lines("$source/$file");
	return 'algorithm';
}

# Sources and headers. Folders of documents have no room.
chomp(my @files = `cd '$source' && find lib -name '*.[ch]' ! -path 'lib/doc/*' ! -path '*/tests/*' | LC_ALL=C sort`);
for my $file (@files) {
	my ($room, $name) = $file =~ /^lib\/(.*)\/([^\/]+)$/;

	$room = room_of($room, $file) if defined $room;
	unless (defined $room && exists $rank{$room}) {
		print "$file: its room is not in the list of lib/README.md\n";
		next;
	}
	$room{$file} = $room;
	print "$name: in $named{$name} and $room\n" if exists $named{$name};
	$named{$name} = $room;
	$header{$name} = $file if $name =~ /\.h$/;
}

# ---- Calls ----

for my $file (grep { /\.c$/ } sort keys %room) {
	my $object = "$build/" . ($file =~ s/c$/o/r);

	unless (-f $object) {
		print "$file: $object is not built\n";
		next;
	}
	for (`nm -g -P '$object'`) {
		my ($symbol, $type) = /^(\S+) (\S)/ or next;

		if ($type =~ /[Uwv]/) {
			$needs{$file}{$symbol} = 1;
		} elsif ($type =~ /[VW]/) {
			next;
		} elsif (exists $defined{$symbol}) {
			print "$symbol: defined in $defined{$symbol} and $file\n";
		} else {
			$defined{$symbol} = $file;
		}
	}
}

# Which library a room is in. Others have copies of what is in base, and link what is public.
sub library { $_[0] =~ /^(global|gate)(\/|$)/ ? $1 : '' }

my %complaint;
for my $file (sort keys %needs) {
	for my $symbol (sort keys %{ $needs{$file} }) {
		my $to = $defined{$symbol} // next;

		if (library($room{$file}) ne library($room{$to}) && $room{$to} ne 'base' && $symbol !~ /^shmlimit_/) {
			print short($file), " calls $symbol, which ", short($to), " does not make public\n";
		} elsif ($rank{ $room{$to} } > $rank{ $room{$file} }) {
			push @{ $complaint{"$file $to"} }, $symbol;
		} else {
			$calls{$file}{$to} = 1;
		}
	}
}
for my $pair (sort keys %complaint) {
	my ($from, $to) = split ' ', $pair;

	print short($from), ' calls up to ', short($to), ": @{ $complaint{$pair} }\n";
}

# ---- Circles: what is left when files that call no other, and those that only call such, are taken away ----

sub circle {
	my ($calls) = @_;
	my $change = 1;

	while ($change) {
		$change = 0;
		for my $file (keys %$calls) {
			delete @{ $calls->{$file} }{ grep { !exists $calls->{$_} } keys %{ $calls->{$file} } };
			next if keys %{ $calls->{$file} };
			delete $calls->{$file};
			$change = 1;
		}
	}
	return () unless %$calls;
	# Every file that is left calls another one that is left: walk until one comes again.
	my ($at) = sort keys %$calls;
	my (%seen, @way);
	until ($seen{$at}++) {
		push @way, $at;
		($at) = sort keys %{ $calls->{$at} };
	}
	shift @way while $way[0] ne $at;
	return (@way, $at);
}

sub report_circles {
	my ($calls) = @_;

	while (my @way = circle($calls)) {
		print 'circle: ', join(' -> ', map { short($_) } @way), "\n";
		delete $calls->{ $way[0] }{ $way[1] };
	}
}
report_circles(\%calls);

# The command has no rooms in an order, and no circles either.
chomp(my @command = `cd '$source' && find tools/shmlimit -name '*.c' 2>/dev/null | LC_ALL=C sort`);
my (%owner, %wants, %command_calls);
for my $file (@command) {
	my $object = "$build/" . ($file =~ s/c$/o/r);

	for (-f $object ? `nm -g -P '$object'` : ()) {
		my ($symbol, $type) = /^(\S+) (\S)/ or next;

		if ($type =~ /[Uwv]/) {
			$wants{$file}{$symbol} = 1;
		} elsif (exists $owner{$symbol}) {
			print "$symbol: defined in $owner{$symbol} and $file\n";
		} else {
			$owner{$symbol} = $file;
		}
	}
}
for my $file (sort keys %wants) {
	$command_calls{$file}{$_} = 1 for grep { defined } map { $owner{$_} } keys %{ $wants{$file} };
}
report_circles(\%command_calls);

# ---- Names: a tag, a type or a function that only its file has is the only one of its name in the library ----

my %local;
for my $file (sort keys %room) {
	my $library = library($room{$file});
	my $text = join '', lines("$source/$file");
	my %seen;

	$text =~ s{/\*.*?\*/}{}gs;
	$text =~ s{^#.*(?:\\\n.*)*}{}gm;
	$seen{"type $1"} = 1 while $text =~ /\b(?:struct|union|enum)\s+(\w+)\s*\{/g;
	$seen{"type $1"} = 1 while $text =~ /^typedef\s[^;{]*?(\w+)\s*(?:\)\s*\([^;]*)?;/gm;
	$seen{"function $1"} = 1 while $text =~ /^(?:[A-Z]+\s+|__attribute__\s*\(\(.*?\)\)\s*)*(?:static|FAST)\s[^;={}()]*?\b(\w+)\([^;{}]*\)\s*\{/gm;
	push @{ $local{$library}{$_} }, $file for keys %seen;
}
for my $library (sort keys %local) {
	for my $name (sort keys %{ $local{$library} }) {
		my @files = @{ $local{$library}{$name} };

		print "$name: in ", join(' and ', map { short($_) } @files), "\n" if @files > 1;
	}
}

# ---- Headers ----

for my $file (sort keys %room) {
	for (lines("$source/$file")) {
		my ($name) = /^#include "([^"]+)"/ or next;
		my $to = $header{$name} // next;

		next if $rank{ $room{$to} } <= $rank{ $room{$file} };
		print short($file), ' includes ', short($to), ", above it\n";
	}
}
