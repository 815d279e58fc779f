/**
 * A server that serves only OpenAPI and discovery documents, so that real kubectls can be tested without an API server.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { aggregatedContentType, discoveryDocuments } from '../../../src/api/discovery/index.ts';
import { openapiV2 } from '../../../src/api/openapi/v2.ts';
import { encodeOpenapiV2, OPENAPI_V2_PROTOBUF } from '../../../src/api/openapi/v2-protobuf.ts';
import { openapiV3, openapiV3Index, openapiV3Paths } from '../../../src/api/openapi/v3.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import type { Descriptions } from '../../../src/api/schema/types-format.ts';

export const descriptions = JSON.parse(
  readFileSync(new URL('../../../src/api/schema/generated/descriptions.json', import.meta.url), 'utf8'),
) as Descriptions;

export interface DocumentsServer {
  readonly url: string;
  /** `METHOD path accept` of each request, in order. */
  readonly requests: string[];
  close(): Promise<void>;
}

export async function serveDocuments(): Promise<DocumentsServer> {
  const documents = discoveryDocuments(builtinKinds);
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const accept = request.headers.accept ?? '';
    requests.push(`${request.method} ${request.url} ${accept}`);
    const send = (body: unknown, type = 'application/json'): void => {
      response.writeHead(200, { 'content-type': type });
      response.end(body instanceof Uint8Array ? body : JSON.stringify(body));
    };
    if (path === '/api' || path === '/apis') {
      const root = path === '/api' ? 'api' : 'apis';
      if (accept.includes('as=APIGroupDiscoveryList')) {
        const version = accept.includes('v=v2;') ? 'v2' : 'v2beta1';
        return send(documents.aggregated(root, version), aggregatedContentType(version));
      }
      return send(root === 'api' ? documents.apiVersions : documents.apiGroups);
    }
    const resources = documents.resources.get(path.replace(/^\/apis?\//, ''));
    if (resources !== undefined) return send(resources);
    if (path === '/version') return send({ major: '1', minor: '36', gitVersion: 'v1.36.0' });
    if (path === '/openapi/v2') {
      const document = openapiV2(builtinKinds, descriptions);
      return accept.includes('protobuf') ? send(encodeOpenapiV2(document), OPENAPI_V2_PROTOBUF) : send(document);
    }
    if (path === '/openapi/v3') return send(openapiV3Index(openapiV3Paths(builtinKinds), (each) => each));
    if (path.startsWith('/openapi/v3/')) {
      const document = openapiV3(builtinKinds, path.slice('/openapi/v3/'.length), descriptions);
      if (document !== undefined) return send(document);
    }
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'not found',
        reason: 'NotFound',
        code: 404,
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
