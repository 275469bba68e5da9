<?php
// php_crowd: how many requests several processes admit, one of which is killed.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

/**
 * $make is called in each of 4 children, and gives a function that says whether a request is admitted; each child calls it 20
 * times. One of them is killed after 5 requests, and replaced. Returns how many requests were admitted.
 */
function crowd(callable $make): int
{
    [$parent, $child] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
    $pids = [];
    foreach ([5, 20, 20, 20, 20] as $times) {
        $pid = pcntl_fork();
        if ($pid === 0) {
            try {
                $admits = $make();
                for ($i = 0; $i < $times; $i++) {
                    fwrite($child, $admits() ? '1' : '0');
                }
            } catch (Throwable $thrown) {
                fwrite(STDERR, "# $thrown\n");
            }
            // Nothing of what a process does at its end happens.
            posix_kill(getmypid(), SIGKILL);
        }
        $pids[] = $pid;
        if ($times === 5) {
            pcntl_waitpid($pid, $status);
        }
    }
    foreach (array_slice($pids, 1) as $pid) {
        pcntl_waitpid($pid, $status);
    }
    fclose($child);
    $answers = stream_get_contents($parent);
    return strlen($answers) === 85 ? substr_count($answers, '1') : -strlen($answers);
}
