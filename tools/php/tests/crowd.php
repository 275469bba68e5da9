<?php
// crowd: how many requests several processes admit, one of which is killed.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

/**
 * $make is called in each of 4 children, and gives a function that says whether a request is admitted; each child calls it 20
 * times. One of them is killed after 5 requests, and replaced; the others are when all have been answered. Returns how many
 * requests were admitted.
 */
function crowd(callable $make): int
{
    [$parent, $child] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
    $pids = [];
    $answers = '';
    foreach ([5, 20, 20, 20, 20] as $times) {
        $pid = pcntl_fork();
        if ($pid === 0) {
            $told = 0;
            fclose($parent);
            try {
                $admits = $make();
                for (; $told < $times; $told++) {
                    fwrite($child, $admits() ? '1' : '0');
                }
            } catch (Throwable $thrown) {
                fwrite(STDERR, "# $thrown\n");
            }
            fwrite($child, str_repeat('!', $times - $told));
            // Until the parent kills it, or ends. Nothing of what a process does at its end happens.
            fread($child, 1);
            posix_kill(getmypid(), SIGKILL);
        }
        $pids[] = $pid;
        if ($times === 5) {
            $answers = stream_get_contents($parent, 5);
            posix_kill($pid, SIGKILL);
        }
    }
    $answers .= stream_get_contents($parent, 80);
    foreach ($pids as $pid) {
        posix_kill($pid, SIGKILL);
        pcntl_waitpid($pid, $status);
    }
    return str_contains($answers, '!') ? -1 : substr_count($answers, '1');
}

/** How often a child that has reported nothing yet reports a proxy that is not configured; -1: it throws. */
function warnings(callable $requests): int
{
    $log = tempnam(sys_get_temp_dir(), 'shmlimit');
    $pid = pcntl_fork();
    if ($pid === 0) {
        ini_set('error_log', $log);
        $requests();
        posix_kill(getmypid(), SIGKILL);
    }
    pcntl_waitpid($pid, $status);
    $count = preg_match_all('/behind a proxy all clients are one/', file_get_contents($log));
    unlink($log);
    return pcntl_wifsignaled($status) && pcntl_wtermsig($status) === SIGKILL ? $count : -1;
}
