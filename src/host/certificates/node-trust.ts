/**
 * Trust between a node without an authority and its cluster: the node's trusted authorities follow
 * `kube-public/cluster-info`, and its Node names the key of its client certificate, so that an expired certificate can
 * be renewed. Decision 0018.
 */

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CLIENT_KEY } from '../../api/kinds/identity/certificatesigningrequests/expired-nodes.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { decodeJson, list, object, optional, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import { INFO_MAP } from '../../controllers/identity/cluster-info/plan.ts';
import { nodeFiles, readIfPresent, writeWhole } from '../../pki/index.ts';
import { contentDigest } from '../../wire/digest.ts';
import type { Settings } from '../config/settings.ts';
import { certificatesOf } from '../join/discovery.ts';
import { writeNodeKubeconfig } from '../join/enrol.ts';
import { systemClock as clock } from '../process/process.ts';

export interface NodeTrustOptions {
  readonly root: string;
  readonly nodeName: NodeName;
  readonly ports: Settings['ports'];
  readonly client: ApiClient;
  /** Called when the trusted authorities have changed. */
  readonly onChanged: () => void;
  readonly log: Log;
}

const CHECK_MS = 20_000;
/**
 * Interval between attempts to publish the key before the Node is registered. It is short, because a host that loses
 * power before its key is published cannot renew an expired certificate.
 */
const UNREGISTERED_MS = 1_000;

export function followTrust({ root, nodeName, ports, client, onChanged, log }: NodeTrustOptions): { stop(): void } {
  const files = nodeFiles(root);
  let failure = '';
  let stopped = false;
  let timer = clock.setTimer(0, () => void round());

  async function round(): Promise<void> {
    let delayMs = CHECK_MS;
    try {
      if (!(await publishKey())) delayMs = UNREGISTERED_MS;
      await updateAuthorities();
      failure = '';
    } catch (error) {
      const message = messageOf(error);
      // Expected while the API server is unavailable, or while an expired certificate is being renewed.
      const isExpected = isApiError(error, 'ServiceUnavailable') || isApiError(error, 'Forbidden');
      if (message !== failure && !isExpected) log.warn('trusted authorities not read; retrying', { error: message });
      failure = message;
    }
    if (!stopped) timer = clock.setTimer(delayMs, () => void round());
  }

  /**
   * Publishes the key of the client certificate as an annotation of the Node. Returns false until the Node is
   * registered.
   */
  async function publishKey(): Promise<boolean> {
    const { publicKey } = new X509Certificate(await readFile(files.clientCurrent));
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const key = contentDigest(spki);
    const nodes = client.resource(resources.nodes);
    const node = await nodes.get(nodeName).catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
    if (node === undefined) return false;
    if (node.metadata?.annotations?.[CLIENT_KEY] !== key)
      await nodes.patch(nodeName, undefined, 'merge', { metadata: { annotations: { [CLIENT_KEY]: key } } });
    return true;
  }

  /**
   * Replaces the trusted authorities by those in `cluster-info`. The response is trusted, because the current
   * authorities verify the server.
   */
  async function updateAuthorities(): Promise<void> {
    const info = await client.resource(resources.configMaps).get(INFO_MAP.name, INFO_MAP.namespace);
    const caPem = authoritiesIn(info.data?.['kubeconfig'] ?? '');
    if (caPem === undefined || caPem === (await readIfPresent(files.clientCa))) return;
    await writeWhole(files.clientCa, caPem, { mode: 0o644, durable: true });
    await writeNodeKubeconfig({ root, nodeName, ports }, caPem);
    log.info('trusted authorities updated', { file: files.clientCa, count: certificatesOf(caPem).length });
    onChanged();
  }

  return {
    stop: () => {
      stopped = true;
      timer.cancel();
    },
  };
}

const CLUSTER = object({ 'certificate-authority-data': optional(text) });
const KUBECONFIG = object({ clusters: optional(list(object({ cluster: optional(CLUSTER) }))) });

/** Authorities in a kubeconfig; undefined if there are none or if a certificate is not an authority. */
function authoritiesIn(kubeconfig: string): string | undefined {
  const document = decodeJson(KUBECONFIG, kubeconfig, 'kubeconfig');
  const data = document.clusters?.[0]?.cluster?.['certificate-authority-data'];
  if (data === undefined) return undefined;
  const pem = Buffer.from(data, 'base64').toString('utf8');
  const all = certificatesOf(pem);
  return all.length > 0 && all.every((each) => each.ca) ? pem : undefined;
}
