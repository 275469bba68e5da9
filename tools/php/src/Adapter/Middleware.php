<?php
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Shmlimit\Adapter;

use Psr\Http\Message\{ResponseFactoryInterface, ResponseInterface, ServerRequestInterface};
use Psr\Http\Server\{MiddlewareInterface, RequestHandlerInterface};
use Psr\Log\LoggerInterface;
use Shmlimit\{Answer, Gate, Limit};

/**
 * PSR-15: asks a gate before the next handler, and adds the header fields to its response. A limit on how many at once counts a
 * request until the handler has returned, or has ended the script. Give the gate
 * `report: $logger->warning(...)` to have problems logged.
 */
final class Middleware implements MiddlewareInterface
{
    private readonly \Closure $limits;
    private readonly ?\Closure $charge;
    /** @var array<int, string> the places of requests that are handled */
    private array $held = [];
    private bool $leavesAtEnd = false;

    /** @param callable(ServerRequestInterface): list<Limit> $limits the limits of a request */
    public function __construct(
        private readonly Gate $gate,
        private readonly ResponseFactoryInterface $responses,
        callable $limits,
        /** Gets a line for each request that is refused, at level info. */
        private readonly ?LoggerInterface $logger = null,
        /** callable(ServerRequestInterface, ?ResponseInterface): array<string, ?int>, for Gate::settle(); without a response the handler threw. */
        ?callable $charge = null,
    ) {
        $this->limits = $limits(...);
        $this->charge = $charge === null ? null : $charge(...);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $limits = ($this->limits)($request);
        $answer = $this->gate->enter(...$limits);
        $response = null;
        $number = $this->hold($answer->places);
        try {
            $this->gate->forwarded($request->getServerParams(), ...$limits);
            $response = $answer->refusal === 0 ? $handler->handle($request) : $this->refuse($request, $answer);
        } finally {
            $this->end($request, $response, $number);
        }
        foreach ($answer->fields as $name => $value) {
            $response = $response->withHeader($name, $value);
        }
        return $response;
    }

    /** What exit() or a fatal error ends runs no `finally`, so places are left when the script ends, too. Returns their number. */
    private function hold(?string $places): ?int
    {
        if ($places === null) {
            return null;
        }
        if (!$this->leavesAtEnd) {
            $this->leavesAtEnd = true;
            register_shutdown_function(function (): void {
                while (($places = array_pop($this->held)) !== null) {
                    $this->gate->leave($places);
                }
            });
        }
        $this->held[] = $places;
        return array_key_last($this->held);
    }

    private function end(ServerRequestInterface $request, ?ResponseInterface $response, ?int $number): void
    {
        if ($number === null) {
            return;
        }
        $places = $this->held[$number];
        try {
            if ($this->charge !== null) {
                $this->gate->settle($places, ($this->charge)($request, $response));
            }
        } finally {
            unset($this->held[$number]);
            $this->gate->leave($places);
        }
    }

    private function refuse(ServerRequestInterface $request, Answer $answer): ResponseInterface
    {
        $this->logger?->info('{method} {path}: refused with {status}: {answer}', [
            'method' => $request->getMethod(),
            'path' => $request->getUri()->getPath(),
            'status' => $answer->refusal,
            'answer' => $answer->status,
        ]);
        $response = $this->responses->createResponse($answer->refusal)->withHeader('Content-Type', 'text/plain');
        $response->getBody()->write($answer->status === 'failed' ? "the limiter is out of order\n" : "too many requests\n");
        return $response;
    }
}
