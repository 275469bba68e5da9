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
 * request until the handler has returned. Give the gate
 * `report: $logger->warning(...)` to have problems logged.
 */
final class Middleware implements MiddlewareInterface
{
    private readonly \Closure $limits;
    private readonly ?\Closure $charge;

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
        $answer = $this->gate->enter(...($this->limits)($request));
        $response = null;
        try {
            $response = $answer->refusal === 0 ? $handler->handle($request) : $this->refuse($request, $answer);
        } finally {
            $this->end($request, $response, $answer->places);
        }
        foreach ($answer->fields as $name => $value) {
            $response = $response->withHeader($name, $value);
        }
        return $response;
    }

    private function end(ServerRequestInterface $request, ?ResponseInterface $response, ?string $places): void
    {
        try {
            if ($this->charge !== null && $places !== null) {
                $this->gate->settle($places, ($this->charge)($request, $response));
            }
        } finally {
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
