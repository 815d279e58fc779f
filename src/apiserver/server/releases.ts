/**
 * Serves files of imported releases at `/hyperedge/releases/sha256/DIGEST` and operator catalogs at
 * `/hyperedge/catalogs/sha256/DIGEST`. RBAC decides who may read them.
 */
import { CATALOG_PATH } from '../../api/kinds/nodes/nodes/catalog-report.ts';
import { ApiError } from '../../api/meta/status.ts';
import { RELEASE_PATH } from '../../api/releases/announcement.ts';
import { isDigest } from '../../api/releases/manifest.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../port.ts';
import { noSuchResource } from '../rest/reads/served-at.ts';
import type { ReleaseSource, ServedFile } from './release-port.ts';

/** Maximum number of concurrent downloads per user, because each keeps a file open. */
const MOST_AT_ONCE = 8;
const RETRY_SECONDS = 10;
/** Downloads by user name. One map per release source, shared by all servers of this process. */
const underWay = new WeakMap<ReleaseSource, Map<string, number>>();

/** Answers a request for a file. Undefined if the path is not a path of releases or catalogs. */
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
    throw new ApiError('TooManyRequests', `${name} has ${before} downloads in progress; try again later`, {
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
  // A download over a slow link may take longer than the request timeout.
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
