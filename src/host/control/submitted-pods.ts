/**
 * Static pods that a local administrator has submitted to the control socket (OKD 3.11: the kubelet's HTTP submit API).
 * Stored as files, so that they survive a restart of the host process.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/core/v1.ts';
import type { NodeName } from '../../base/brand.ts';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { decodeStaticPod } from '../../kubelet/index.ts';
import type { Manifest, ManifestFeed } from '../../kubelet/port.ts';

export const MAX_SUBMITTED_BYTES = 1024 * 1024;
const MAX_PODS = 500;

export interface SubmittedPods {
  readonly feed: ManifestFeed;
  list(): readonly Pod[];
  /**
   * Stores a manifest. A stored manifest with the same namespace and name is replaced. Throws CodedError 'static-pod'
   * for a pod that cannot run.
   */
  submit(content: string): Promise<Pod>;
  /**
   * Removes a manifest, even one that was invalid at the start. `name` is the pod's name, with or without the node name
   * as suffix. Throws CodedError 'not-found'.
   */
  remove(namespace: string, name: string): Promise<void>;
}

interface Submitted {
  readonly content: string;
  readonly pod: Pod;
}

/**
 * Reads the stored manifests. An invalid file is logged and kept, because a later version or an administrator can make
 * it valid again.
 */
export async function openSubmittedPods(
  directory: string,
  { nodeName, clock, log }: { readonly nodeName: NodeName; readonly clock: Clock; readonly log: Log },
): Promise<SubmittedPods> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const pods = new Map<string, Submitted>();
  const refused = new Set<string>();
  const listeners = new Set<(manifests: readonly Manifest[]) => void>();
  const decode = (content: string, origin: string): Pod =>
    decodeStaticPod(content, { nodeName, kind: 'submitted', origin, nowMs: clock.nowMs() });
  for (const file of (await readdir(directory)).filter((each) => each.endsWith('.yaml')).sort()) {
    const content = await readFile(join(directory, file), 'utf8');
    try {
      pods.set(file, { content, pod: decode(content, file) });
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      log.error('submitted pod not started; its stored manifest is invalid', {
        file: join(directory, file),
        error: error.message,
      });
      refused.add(file);
    }
  }
  const publish = (): void => {
    const manifests = [...pods].map(([origin, { content }]) => ({ origin, content }));
    for (const listener of listeners) listener(manifests);
  };
  return {
    feed: {
      source: 'submitted',
      follow(listener) {
        listeners.add(listener);
        listener([...pods].map(([origin, { content }]) => ({ origin, content })));
        return () => listeners.delete(listener);
      },
    },
    list: () => [...pods.values()].map(({ pod }) => pod),
    async submit(content) {
      const { metadata } = decode(content, 'request');
      const file = `${metadata?.namespace ?? ''}_${metadata?.name ?? ''}.yaml`;
      if (!pods.has(file) && pods.size >= MAX_PODS)
        throw new CodedError('static-pod', `${MAX_PODS} pods are submitted; delete one first`);
      const pod = decode(content, file);
      const temporary = join(directory, `${file}.new`);
      await writeFile(temporary, content, { mode: 0o600, flush: true });
      await rename(temporary, join(directory, file));
      refused.delete(file);
      pods.set(file, { content, pod });
      publish();
      return pod;
    },
    async remove(namespace, name) {
      const files = [`${namespace}_${name}.yaml`, `${namespace}_${name}-${nodeName.toLowerCase()}.yaml`];
      const file = files.find((each) => pods.has(each) || refused.has(each));
      if (file === undefined) throw new CodedError('not-found', `pods "${name}" not found in namespace ${namespace}`);
      await rm(join(directory, file), { force: true });
      refused.delete(file);
      pods.delete(file);
      publish();
    },
  };
}
