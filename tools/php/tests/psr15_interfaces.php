<?php
// PSR-15's two interfaces, of which Debian has no package.
//
// SPDX-License-Identifier: BSD-2-Clause

declare(strict_types=1);

namespace Psr\Http\Server;

use Psr\Http\Message\{ResponseInterface, ServerRequestInterface};

interface RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): ResponseInterface;
}

interface MiddlewareInterface
{
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface;
}
