/** Metrics of the store's members. They do not require the API server. */
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { messageOf } from '../../base/errors.ts';
import type { SectionSink } from '../../support-bundle/port.ts';
import { readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';

const ANSWER_MS = 8000;
const MAX_BYTES = 4 << 20;

/** Stores the metrics. The request uses the client certificate of the API server, which only masters have. */
export async function collectStoreMetrics(sink: SectionSink, masterConfig: string, signal: AbortSignal): Promise<void> {
  try {
    const { etcdClientInfo } = await readMasterConfig(masterConfig);
    const read = (path: string | undefined): Promise<string | undefined> =>
      path === undefined ? Promise.resolve(undefined) : readFile(resolveRelativeTo(masterConfig, path), 'utf8');
    const { urls, ca, certFile, keyFile } = etcdClientInfo;
    const [authority, cert, key] = await Promise.all([read(ca), read(certFile), read(keyFile)]);
    for (const [index, url] of urls.entries()) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
      try {
        await sink.stream(`metrics/store-${index}.txt`, get(`${url}/metrics`, { ca: authority, cert, key }, limited), {
          maxBytes: MAX_BYTES,
        });
      } catch (error) {
        sink.missing(`metrics of the store at ${url}`, messageOf(error));
      }
    }
  } catch (error) {
    sink.missing('metrics of the store', messageOf(error));
  }
}

interface Credentials {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

async function* get(url: string, credentials: Credentials, signal: AbortSignal): AsyncGenerator<string> {
  const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    request(url, { ...credentials, signal, agent: false }, (answer) => {
      if (answer.statusCode === 200) return resolve(answer);
      answer.resume();
      reject(new Error(`status ${answer.statusCode}`));
    })
      .on('error', reject)
      .end();
  });
  response.setEncoding('utf8');
  for await (const text of response) yield String(text);
}
