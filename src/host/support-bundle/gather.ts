/**
 * Data collection for `oc adm must-gather`, which runs in a pod. It collects the same objects as a support bundle, with
 * the same redaction, and the logs of all hosts. The files have the layout of `oc adm inspect`.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { type ApiClient, createApiClient } from '../../client/index.ts';
import { createKnownValues } from '../../support-bundle/core/index.ts';
import { systemClock as clock } from '../process/process.ts';
import { type ClusterCollection, collectNodeLogs, collectObjects, collectPodLogs } from './cluster.ts';
import { SecretValues, secretsOfCluster } from './known-secrets.ts';
import { createSpool } from './spool.ts';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const SECRETS_MS = 60_000;
const MAX_BYTES = 4 * 1024 ** 3;
const MAX_ENTRIES = 100_000;

/**
 * Collects the data. Returns the number of parts that could not be collected. Throws CodedError 'no-cluster' outside of
 * a pod.
 */
export async function gatherCluster(directory: string, print: (line: string) => void): Promise<number> {
  const client = await ownClient();
  try {
    const secrets = new SecretValues();
    await secretsOfCluster(client, secrets, AbortSignal.timeout(SECRETS_MS)).catch((error: unknown) =>
      print(`warning: secrets of the cluster: ${messageOf(error)}; only known patterns of secrets are removed`),
    );
    await mkdir(directory, { recursive: true });
    const files = createSpool(directory, createKnownValues(secrets.values), MAX_ENTRIES).section(MAX_BYTES);
    let missed = 0;
    const collection: ClusterCollection = {
      client,
      sink: {
        ...files.sink,
        missing: (what, reason) => {
          missed += 1;
          print(`error: ${what}: ${reason}`);
        },
      },
      signal: new AbortController().signal,
      print,
      prefix: '',
    };
    await collection.sink.stream('version', [`hyperedge/must-gather\n${PRODUCT_VERSION}\n`]);
    await collection.sink.stream('timestamp', [`${new Date(clock.nowMs()).toISOString()}\n`]);
    await collectObjects(collection, false);
    await collectPodLogs(collection);
    await collectNodeLogs(collection);
    missed += (await files.finish(undefined)).problems.length;
    print(`Wrote what was gathered to ${directory}; ${missed} parts are missing`);
    return missed;
  } finally {
    await client.close();
  }
}

async function ownClient(): Promise<ApiClient> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (host === undefined || port === undefined)
    throw new CodedError('no-cluster', 'KUBERNETES_SERVICE_HOST: not set; run oc adm must-gather, which makes a pod');
  return createApiClient({
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: await readFile(join(ACCOUNT, 'ca.crt'), 'utf8'),
    tokenFile: join(ACCOUNT, 'token'),
    userAgent: 'must-gather/hyperedge',
    log: silentLog,
    clock,
  });
}
