# random.pl BUILD N [SEED [SECONDS]]: breaks a copy of the project in one place at a time, N times, where SEED says, and
# runs tests until one fails: in turn the core, the gate, the library for many hosts, the command, and the C of a binding
# or of the servers' modules. Prints a line for each mutant, then how many were killed. A mutant that does not compile, or
# whose objects are as before, is replaced by another. Ends early after SECONDS. Fails if one lives.
#
# In the environment: ONLY=PATTERN limits the files; LIST=yes prints what would be drawn, and builds nothing; EACH=SECONDS
# bounds the processor time that one mutant's tests have, where all that are near were tried. The same seed, pattern and
# sources draw the same mutants. As root it has processes, /dev/shm and a loopback of its own: a mutant may end or remove
# what it meets.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;
use Cwd 'abs_path';
use POSIX qw(SIGKILL SIGXCPU);
use Time::HiRes 'time';

my ($build, $n, $seed, $seconds) = @ARGV;
my $only = $ENV{ONLY} // '.';
my $each = $ENV{EACH} // 0;
my $source = abs_path($0 =~ s{[^/]*$}{../..}r);
my $folder;
my $make = 'make -s O=build CC=gcc CFLAGS="-O1 -Werror=incompatible-pointer-types -Werror=int-conversion ' .
	'-Werror=implicit-function-declaration"';
my $alone = 'mount -t tmpfs -o mode=1777 shm /dev/shm && ip link set lo up && ';
if ($> == 0 && !$ENV{LIST} && !$ENV{MUTANTS_ALONE} && system("unshare -mn sh -c '$alone:' 2>/dev/null") == 0) {
	$ENV{MUTANTS_ALONE} = $$;
	exec 'unshare', qw(-mnpf --mount-proc --kill-child sh -c), $alone . 'exec "$@"', 'sh', $^X, abs_path($0), @ARGV;
}
my $began = time;
$seed ||= time & 0xffffff;
$seconds ||= 3600;
srand $seed;
$| = 1;

if ($ENV{LIST}) {
	chdir $source or die "$source: $!\n";
} else {
	mkdir $build;
	$folder = abs_path($build) . '/mutant.' . ($ENV{MUTANTS_ALONE} // $$);
	system("mkdir '$folder' && cd '$source' && cp -R Makefile *.md LICENSE include lib bench tests tools '$folder/'") == 0
		or die "$folder: the project cannot be copied\n";
	chdir $folder or die "$folder: $!\n";
}
END { local $?; chdir '/'; system('rm', '-rf', $folder) if defined $folder }
$SIG{INT} = $SIG{TERM} = sub { exit 2 };

# Reads or writes a whole file.
sub content {
	my ($file, $text) = @_;
	local $/;
	open my $h, defined $text ? '>' : '<', $file or die "$file: $!\n";
	defined $text ? print $h $text : return <$h>;
}

# ---- Where a file can be broken: [kind, offset, length, text instead] ----

my %instead = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==', '&&' => '||', '||' => '&&',
	'+' => '-', '-' => '+', '*' => '/', '/' => '*', '%' => '/', '<<' => '>>', '>>' => '<<', '&' => '|', '|' => '&',
	'^' => '|', '+=' => '-=', '-=' => '+=', '|=' => '&=', '&=' => '|=', '++' => '--', '--' => '++');
my $parens = qr/(?<p>\((?:[^()]++|(?&p))*\))/;

sub sites {
	my ($whole) = @_;
	my ($text, @sites) = $whole;
	# Comments, strings, characters and what is for the preprocessor cannot be broken: blanks in their place.
	$text =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^\#(?:[^\n\\]|\\.)*)}{$1 =~ s/[^\n]/\x01/gr}gesmx;
	my $add = sub { push @sites, [@_] };
	while ($text =~ / (<=|>=|==|!=|<|>) /g) { $add->('relational', $-[1], length $1, $instead{$1}) }
	while ($text =~ / (&&|\|\|) /g) { $add->('logical', $-[1], 2, $instead{$1}) }
	while ($text =~ / (\+|-|\*|\/|%|<<|>>|&|\||\^|\+=|-=|\|=|&=) |(\+\+|--)/g) {
		my $at = defined $1 ? $-[1] : $-[2];
		$add->('arithmetic', $at, length($1 // $2), $instead{$1 // $2});
	}
	while ($text =~ /(?<![\w.\x01])(\d+)(?=[uUlL]*(?![\w.]))/g) {
		$add->('constant', $-[1], length $1, $1 + 1);
		$add->('constant', $-[1], length $1, $1 - 1) if $1 > 0;
	}
	while ($text =~ /\b(?:if|while) ($parens)/g) {
		my ($at, $length) = ($-[1], length $1);
		my $is = substr $whole, $at, $length;
		$add->('negation', $at, $length, "(!$is)");
		$add->('dropped check', $at, $length, "(0 && $is)");
		$add->('dropped check', $at, $length, "(1 || $is)");
	}
	# A statement on lines of its own that is an assignment, a call, or a step: no declaration, and no return.
	while ($text =~ /^\t+((?:\(void\))?(?:\*|\+\+|--)?[a-z][\w.>\[\]-]*(?:$parens| ?[-+|&^*\/<>]*= |\+\+|--)[^;{}]*;|break;|continue;)$/mg) {
		$add->('deletion', $-[1], length $1, ';') if $1 !~ /^return\b/;
	}
	while ($text =~ /\b[a-z]\w*\(([^(),;{}\n]+), ([^(),;{}\n]+)(?=[,)])/g) {
		my ($first, $second, $at) = ($1, $2, $-[1]);
		$add->('swap', $at, length("$first, $second"), "$second, $first") if "$first$second" !~ /\x01|\bsizeof\b/;
		pos($text) = $at;
	}
	while ($text =~ /, ([^(),;{}\n]+), ([^(),;{}\n]+)(?=[,)])/g) {
		my ($first, $second, $at) = ($1, $2, $-[1]);
		$add->('swap', $at, length("$first, $second"), "$second, $first") if "$first$second" !~ /[\x01=]|\bsizeof\b/;
		pos($text) = $at;
	}
	return @sites;
}

# ---- Areas: their files, what is built for all tests, besides each, and the groups of tests that mind ----

my @areas = (
	{ files => qr{^lib/gate/}, objects => 'lib/gate', groups => ['gate'] },
	annexes(),
	{ files => qr{^lib/}, objects => 'lib/[^g]*', groups => [qw(unit process gate schedule)] },
	{ files => qr{^tools/shmlimit/}, goals => 'all', objects => 'tools/shmlimit', groups => ['cli'] },
	{ files => qr{^tools/(?:nginx|apache|server)/}, goals => 'all servers', groups => ['server'], turns => 1,
		objects => 'tools/server build/nginx build/apache build/tools/apache' },
);

# What tools/annexes.mk lists: a library of its own, or a binding, of which one takes the turn.
sub annexes {
	return map {
		my ($folder, $name) = /^(.*\/(.*))\//;
		# A package that its tests build is compiled beside them, to see whether it can be, and is another.
		my $first = "mkdir -p build/$folder && for f in $folder/*/*.c; do gcc -O1 -w -Werror=implicit-function-declaration " .
			"-Iinclude \$(python3-config --includes) -c -o build/$folder/\$(basename \$f).o \$f || exit 1; done";
		{ files => qr{^$folder/}, objects => "$folder build/$name", groups => [$name], $folder =~ /^lib/ ? () : (turns => 1,
			goals => "all build-$name", -e "$folder/setup.py" ? (first => $first) : ()) };
	} grep { /\/(\w+)\/\1\.mk$/ } sort glob '{lib,tools}/*/*.mk';
}

for my $file (sort grep { /$only/ } split /\n/, `find lib tools -name '*.[ch]' ! -path '*/tests/*' ! -path '*/bench/*'`) {
	my ($area) = grep { $file =~ $_->{files} } @areas or next;
	push @{ $area->{of_kind}{ $_->[0] } }, [$file, @$_] for sites(content($file));
}
my @drawn_from = grep { $_->{of_kind} } @areas or die "no file can be broken\n";
# The bindings and the servers take one turn together.
my @own = grep { !$_->{turns} } @drawn_from;
my @others = grep { $_->{turns} } @drawn_from;
@drawn_from = map { (@own, $_) } @others if @own && @others;

# ---- Tests ----

# By each test: seconds, of processor time and on the clock, and whether it passes where nothing is broken.
my (%took, %lasted, %sound, %left_out);

# Seconds of processor time that builds and tests have had. What else runs on this machine does not count.
sub used {
	my (undef, undef, $user, $system) = times;
	return $user + $system;
}

sub of_groups {
	return map {
		my $group = $_;
		map { "$group/" . s/.*\/|\.(?:c|sh)$//gr } grep { !/\/$group\.sh$/ }
			glob "tests/$group/*.{c,sh} {lib,tools}/$group/tests/*.{c,sh} {lib,tools}/*/tests/$group/*.{c,sh}";
	} @_;
}

# Words of a path, singular.
sub words {
	return map { s/s$//r } map { split /_/ } grep { !/^(?:lib|tools|shmlimit|src|ext|cmd)$/ } split /\//, $_[0] =~ s/\.\w+$//r;
}

# Those that a file's change can make fail: first those whose names share a word with the file's, the quick ones first.
# Returns how many these are, then all.
sub tests_for {
	my ($file, $area) = @_;
	my @tests = of_groups(@{ $area->{groups} });
	push @tests, 'schedule/mailbox' if $file =~ /^lib\/global/;
	push @tests, 'global/share', 'global/take' if $file =~ /lease|fast/ && $file !~ /^lib\/g/;
	my %word = map { $_ => 1 } words($file);
	my %near = map { my $t = $_; $t => scalar grep { $word{$_} } words($t =~ s/^\w+\///r) } @tests;
	my $n = 0;
	my %place = map { $_ => $n++ / 1000 } @tests;
	my @order = sort { $near{$b} <=> $near{$a} || ($took{$a} // $place{$a}) <=> ($took{$b} // $place{$b}) }
		grep { !$left_out{$_} } @tests;
	return (scalar(grep { $near{$_} } @order), @order);
}

my $endless = 'it does not come to its end';

# Runs it, each of its processes within ten times the processor time that it took before. Only a test that waits is
# ended by the clock, and late. Returns '' if it passes, and else what fails first.
sub failure {
	my ($test) = @_;
	return 'it cannot be built' if !-e "build/tests/$test.t";
	my $limit = int(30 + 10 * ($took{$test} // 12));
	my $patience = int(120 + 10 * ($lasted{$test} // 12));
	my ($start, $start_used) = (time, used());
	local $ENV{TEST_SCALE} = $ENV{TEST_SCALE} // ($test =~ /^g/ ? 1 : 0.2);
	my $out = `ulimit -t $limit; exec timeout -k 5 $patience build/tests/$test.t 2>/dev/null </dev/null`;
	# Not by the exit status alone: a program that ends before its plan has failed.
	if ($? == 0 && $out !~ /^not ok/m && $out =~ /^1\.\./m) {
		($took{$test}, $lasted{$test}) = (used() - $start_used, time - $start);
		return '';
	}
	return $1 if $out =~ /^not ok \d+ - (.*)/m;
	my ($status, $signal) = ($? >> 8, $? & 127);
	return $endless if $status == 124 || $status == 128 + SIGKILL || $signal == SIGKILL || $signal == SIGXCPU;
	return 'it ends early';
}

my %whole; # by each object: what it is where nothing is broken

# How many of the area's objects are not as they are where nothing is broken? As what is built now is, if `whole`.
sub differs {
	my ($area, $whole) = @_;
	my $n = 0;
	for (`find build/$area->{objects} -name '*.o' 2>/dev/null | xargs -r md5sum`) {
		my ($sum, $object) = split;
		$whole{$object} = $sum if $whole;
		$n++ if $sum ne ($whole{$object} // '');
	}
	return $n;
}

# Builds what the area's tests need, and these tests. Several at once: each run of make reads all the project's makefiles.
sub build {
	my ($area, @tests) = @_;
	my @programs = map { "build/tests/$_.t" } @tests;
	my $goals = join ' ', $area->{goals} // (), @programs;
	unlink @programs;
	return 0 if $area->{first} && system("($area->{first}) >/dev/null 2>&1") != 0;
	return system("$make $goals >/dev/null 2>&1") == 0;
}

# Returns what is found out about a mutant: 'same' or 'unbuilt'; 'killed', and by what; or 'lives', and how many tests were tried,
# if not all. A test that fails without a mutant too is left out.
sub judge {
	my ($file, $text, $broken, $area) = @_;
	my ($near, @tests) = tests_for($file, $area);
	my $tried = 0;
	if (!$area->{built}++) {
		build($area, $tests[0]) or die "$file: its tests cannot be built\n";
		differs($area, 1);
	}
	content($file, $broken);
	my $start = used();
	while (my @some = splice @tests, 0, $tried ? 4 : 2) {
		return ('lives', $tried) if $each && $tried >= $near && used() - $start > $each;
		if (!build($area, @some)) {
			return 'unbuilt' if !$tried;
			return ('killed', "$some[0]: it cannot be built");
		}
		return 'same' if !$tried && !differs($area);
		for my $test (@some) {
			$tried++;
			my $wrong = failure($test) or next;
			# What was late may have been so for want of a processor.
			if (!$sound{$test} || $wrong eq $endless) {
				content($file, $text);
				build($area, $test);
				$sound{$test} = failure($test) eq '' || failure($test) eq '';
			}
			return ('killed', "$test: $wrong") if $sound{$test};
			content($file, $broken);
			build($area, @some);
			$left_out{$test} = 1;
			print "# $test fails without a mutant, and is left out: $wrong\n";
		}
	}
	return 'lives';
}

# ---- Draw, break, build, test ----

my ($killed, $lived, $same, $unbuilt, $draws, %drawn, %of_area) = (0, 0, 0, 0, 0);
while ($killed + $lived < $n && time - $began < $seconds) {
	my $area = $drawn_from[$draws++ % @drawn_from];
	my @kinds = sort keys %{ $area->{of_kind} };
	my $of = $area->{of_kind}{ $kinds[int rand @kinds] };
	my ($file, $kind, $at, $length, $new) = @{ $of->[int rand @$of] };
	next if $drawn{"$file $at $new"}++;
	my $text = content($file);
	my $line = 1 + (substr($text, 0, $at) =~ tr/\n//);
	my $broken = $text;
	my $old = substr $broken, $at, $length, $new;
	my $what = "$file:$line $kind: " . (split /\n/, $text)[$line - 1] =~ s/^\s+//r . " ($old => $new)" =~ s/\s+/ /gr;
	if ($ENV{LIST}) {
		print ++$lived, " $what\n";
		next;
	}
	my ($verdict, $by) = judge($file, $text, $broken, $area);
	content($file, $text);
	if ($verdict eq 'unbuilt') {
		$unbuilt++;
	} elsif ($verdict eq 'same') {
		$same++;
	} else {
		my $dead = $verdict eq 'killed';
		$dead ? $killed++ : $lived++;
		$of_area{ $area->{objects} =~ s/ .*|\/\[.*//r }[!$dead]++;
		printf "%d %s | %s\n", $killed + $lived, $what, $dead ? "killed by $by" : 'LIVES' . ($by ? " after $by tests" : '');
	}
}
exit 0 if $ENV{LIST};
printf "# %s: %d killed, %d live\n", $_, map { $_ // 0 } @{ $of_area{$_} }[0, 1] for sort keys %of_area;
printf "# seed %s: %d of %d killed, %d live; %d more left the code as it was, %d did not compile; %d s\n", $seed, $killed,
	$killed + $lived, $lived, $same, $unbuilt, time - $began;
exit($lived != 0);
