/**
 * Allocates user and group ID ranges for pods with `hostUsers: false` (KEP-127). Each pod gets 65,536 exclusive IDs,
 * stored in a file of the pod for the next kubelet. Source: pkg/kubelet/userns/userns_manager.go.
 */

import { join } from 'node:path';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../../base/brand.ts';
import { type Decoded, decodeJson, list, number, object } from '../../../base/decode.ts';
import { messageOf } from '../../../base/errors.ts';
import type { IdMapping, RuntimeFeatures } from '../../../runtime/port.ts';
import type { KubeletDeps } from '../../deps.ts';
import type { PodDirectories } from '../directories.ts';

const LENGTH = 65_536;
/** The first range belongs to the host's own users. */
const FIRST = 65_536;
const MAX_ID = 2 ** 32 - 1;

type Needs = Pick<KubeletDeps, 'config' | 'files' | 'trees' | 'log'>;

const MAPPINGS = object({ uidMappings: list(object({ hostId: number, containerId: number, length: number })) });
type Mapping = Decoded<typeof MAPPINGS>['uidMappings'][number];

export class UserNamespaces {
  readonly #deps: Needs;
  readonly #directories: PodDirectories;
  readonly #features: RuntimeFeatures;
  readonly #ranges = new Map<Uid, number>();

  constructor(deps: Needs, directories: PodDirectories, features: RuntimeFeatures) {
    this.#deps = deps;
    this.#directories = directories;
    this.#features = features;
  }

  /** Loads the ranges of pods that an earlier kubelet started and that may still run. */
  async start(): Promise<void> {
    const { files, log } = this.#deps;
    for (const uid of (await files.pods.names(this.#directories.pods)).map(toUid)) {
      const file = this.#file(uid);
      const text = await files.manifests.read(file).catch(() => undefined);
      if (text === undefined) continue;
      try {
        this.#ranges.set(uid, rangeIn(text));
      } catch (error) {
        log.error('user namespace of a pod not restored', { file, error: messageOf(error) });
      }
    }
  }

  /**
   * Returns undefined when the pod uses the host's user namespace. Throws an Error with upstream's text when no range
   * is available.
   */
  async mappingOf(pod: Pod, handler = ''): Promise<IdMapping | undefined> {
    const { hostUsers } = (pod.spec ?? {}) as { readonly hostUsers?: boolean };
    if (hostUsers !== false) return undefined;
    const found = this.#features.handlers?.find(({ name }) => name === handler);
    if (found?.userNamespaces !== true)
      throw new Error(`RuntimeClass handler ${JSON.stringify(handler)} does not support user namespaces`);
    const uid = toUid(pod.metadata?.uid);
    const range = this.#ranges.get(uid) ?? this.#free();
    if (!this.#ranges.has(uid)) {
      this.#ranges.set(uid, range);
      const mappings: readonly Mapping[] = [{ hostId: hostIdOf(range), containerId: 0, length: LENGTH }];
      const content = JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
      try {
        await this.#deps.files.pods.replace(this.#file(uid), `${content}\n`);
      } catch (error) {
        this.#ranges.delete(uid);
        throw error;
      }
    }
    return { hostId: hostIdOf(range), length: LENGTH };
  }

  /** Releases the range of an ended pod for reuse. */
  release(uid: Uid): void {
    if (!this.#ranges.delete(uid)) return;
    const { trees, log } = this.#deps;
    trees
      .remove(this.#file(uid))
      .catch((error: unknown) => log.warn('user namespace file not removed', { uid, error: messageOf(error) }));
  }

  #free(): number {
    const used = new Set(this.#ranges.values());
    for (let range = 0; range < this.#deps.config.maxPods && hostIdOf(range) + LENGTH <= MAX_ID; range++)
      if (!used.has(range)) return range;
    throw new Error('could not find an empty slot to allocate a user namespace');
  }

  #file(uid: Uid): string {
    return join(this.#directories.pod(uid), 'userns');
  }
}

/** Creates the allocator with the ranges of pods that an earlier kubelet started. */
export async function openUserNamespaces(
  deps: Needs,
  directories: PodDirectories,
  features: RuntimeFeatures,
): Promise<UserNamespaces> {
  const made = new UserNamespaces(deps, directories, features);
  await made.start();
  return made;
}

const hostIdOf = (range: number): number => FIRST + range * LENGTH;

/** Range of IDs in a user namespace file. Throws an Error for an invalid file. */
function rangeIn(content: string): number {
  const { uidMappings } = decodeJson(MAPPINGS, content, 'user namespace');
  const [first, ...more] = uidMappings;
  const { hostId, containerId, length } = first ?? {};
  const range = ((hostId ?? 0) - FIRST) / LENGTH;
  if (more.length > 0 || containerId !== 0 || length !== LENGTH || !Number.isInteger(range) || range < 0)
    throw new Error(`not one mapping of ${LENGTH} ids`);
  return range;
}
