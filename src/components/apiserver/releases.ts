/** `/hyperedge/releases/sha256/DIGEST`: a file of an imported release. Who may read it is a matter of RBAC. */
import { RELEASE_PATH } from '../../api/releases/announcement.ts';
import { isDigest } from '../../api/releases/manifest.ts';
import type { Exchange } from './http/exchange.ts';
import type { HttpResponse } from './port.ts';
import type { ReleaseSource } from './release-port.ts';
import { noSuchResource } from './rest/served-at.ts';

/** Undefined: the path is another one. */
export function answerRelease(exchange: Exchange, releases: ReleaseSource | undefined): Promise<void> | undefined {
  const { path } = exchange.info;
  if (releases === undefined || !path.startsWith(RELEASE_PATH)) return undefined;
  const digest = path.slice(RELEASE_PATH.length);
  if (!isDigest(digest)) throw noSuchResource();
  return send(exchange, releases, digest);
}

async function send(exchange: Exchange, releases: ReleaseSource, digest: string): Promise<void> {
  const file = await releases.open(digest);
  if (file === undefined) throw noSuchResource();
  // A slow link takes longer than a request may.
  exchange.longRunning = true;
  exchange.deadlineMs = Number.POSITIVE_INFINITY;
  const { response } = exchange;
  response.writeHead(200, { ...exchange.headers('application/octet-stream'), 'content-length': file.size });
  if (exchange.info.verb === 'head') {
    response.end();
    return;
  }
  for await (const chunk of file.content) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await drained(response);
  }
  response.end();
}

function drained(response: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
