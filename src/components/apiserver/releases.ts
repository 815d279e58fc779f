/**
 * `/hyperedge/releases/sha256/DIGEST`: a file of an imported release; `/hyperedge/catalogs/sha256/DIGEST`: a catalog of
 * operators. Who may read them is a matter of RBAC.
 */
import { CATALOG_PATH } from '../../api/kinds/nodes/catalog-report.ts';
import { ApiError } from '../../api/meta/status.ts';
import { RELEASE_PATH } from '../../api/releases/announcement.ts';
import { isDigest } from '../../api/releases/manifest.ts';
import type { Exchange } from './http/exchange.ts';
import type { HttpResponse } from './port.ts';
import type { ReleaseSource, ServedFile } from './release-port.ts';
import { noSuchResource } from './rest/served-at.ts';

/** Files that a user may be sent at once: each is open for as long as its reader takes. */
const MOST_AT_ONCE = 8;
const RETRY_SECONDS = 10;
/** By user name; of each server of this process. */
const underWay = new WeakMap<ReleaseSource, Map<string, number>>();

/** Undefined: the path is another one. */
export function answerRelease(exchange: Exchange, releases: ReleaseSource | undefined): Promise<void> | undefined {
  const { path } = exchange.info;
  const prefix = [RELEASE_PATH, CATALOG_PATH].find((each) => path.startsWith(each));
  if (releases === undefined || prefix === undefined) return undefined;
  const digest = path.slice(prefix.length);
  if (!isDigest(digest)) throw noSuchResource();
  return oneOfFew(exchange, releases, () =>
    send(exchange, prefix === RELEASE_PATH ? releases.open(digest) : releases.openCatalog(digest)),
  );
}

async function oneOfFew(exchange: Exchange, releases: ReleaseSource, work: () => Promise<void>): Promise<void> {
  const counts = underWay.get(releases) ?? new Map<string, number>();
  underWay.set(releases, counts);
  const { name } = exchange.user;
  const before = counts.get(name) ?? 0;
  if (before >= MOST_AT_ONCE)
    throw new ApiError('TooManyRequests', `${name} is being sent ${before} files already; try again later`, {
      retryAfterSeconds: RETRY_SECONDS,
    });
  counts.set(name, before + 1);
  try {
    await work();
  } finally {
    const left = (counts.get(name) ?? 1) - 1;
    if (left > 0) counts.set(name, left);
    else counts.delete(name);
  }
}

async function send(exchange: Exchange, opening: Promise<ServedFile | undefined>): Promise<void> {
  const file = await opening;
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
