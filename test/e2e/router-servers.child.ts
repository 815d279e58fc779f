/**
 * Backend servers for routes: HTTP on the first port, TLS on the second. Arguments: address, ports, certificate, key.
 */
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';

const [address = '', http = '', https = '', cert = '', key = ''] = process.argv.slice(2);
createServer((request, response) =>
  response.end(`plain ${request.url} ${request.headers['x-forwarded-proto']}\n`),
).listen(Number(http), address);
createSecureServer({ cert, key }, (request, response) => response.end(`sealed ${request.url}\n`)).listen(
  Number(https),
  address,
);
