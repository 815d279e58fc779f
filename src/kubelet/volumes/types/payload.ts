/** Volumes whose files the kubelet writes: contents, modes and owners. Source: pkg/volume/{configmap,secret}. */
import type { DownwardAPIVolumeFile, KeyToPath, Pod, Volume } from '../../../api/generated/core/v1.ts';
import { toUid } from '../../../base/brand.ts';
import { canonicalJson } from '../../../base/json/canonical-json.ts';
import type { Quantity } from '../../../base/quantity.ts';
import type { ExpansionBudget } from '../../pods/containers/expansion.ts';
import { fieldValue, resourceValue } from '../../pods/containers/field-path.ts';
import type { ProjectedFile } from '../../ports/files-port.ts';
import type { ConfigData } from '../config-objects.ts';
import type { TokenSource } from '../tokens.ts';
import { makeTmpfs } from './tmpfs.ts';
import type { DirectVolumeHost, DirectVolumes, SetUpContext } from './type.ts';

export interface PayloadInput extends SetUpContext {
  readonly pod: Pod;
  readonly tokens: Pick<TokenSource, 'token'>;
  readonly allocatable: Readonly<Record<string, Quantity>>;
}

/** Whether labels or annotations changed, which downward API files may contain. */
export function downwardFilesChange(before: Pod, pod: Pod): boolean {
  const metadata = ({ metadata }: Pod): string => canonicalJson([metadata?.labels, metadata?.annotations]);
  return hasDownwardFiles(pod) && metadata(before) !== metadata(pod);
}

const hasDownwardFiles = (pod: Pod): boolean =>
  pod.spec?.volumes?.some(
    (volume) =>
      volume.downwardAPI !== undefined || volume.projected?.sources?.some((source) => source.downwardAPI !== undefined),
  ) === true;

/** Whether files of the pod contain its addresses, which are known only after the sandbox was created. */
export const showsAddresses = ({ spec }: Pod): boolean =>
  spec?.volumes?.some(({ downwardAPI, projected }) =>
    [downwardAPI, ...(projected?.sources ?? []).map((source) => source.downwardAPI)].some((files) =>
      files?.items?.some(({ fieldRef }) => fieldRef?.fieldPath.startsWith('status.') === true),
    ),
  ) === true;

/** File contents by path relative to the volume. */
export type Files = Map<string, ProjectedFile>;

export const DEFAULT_MODE = 0o644;

/**
 * Volumes whose files the kubelet writes. `fill` adds the files of a volume. Directories are mounted as tmpfs unless
 * the medium is the disk.
 */
export function payloadVolumes(
  host: Pick<DirectVolumeHost, 'directories' | 'files' | 'mounts' | 'tokens' | 'clock' | 'allocatable'>,
  plugin: string,
  medium: 'disk' | 'memory',
  fill: (files: Files, input: PayloadInput, volume: Volume) => Promise<void>,
): DirectVolumes {
  const pathOf = (pod: Pod, volume: Volume): string =>
    host.directories.volume(toUid(pod.metadata?.uid), plugin, volume.name);
  return {
    pathOf,
    async setUp(pod, volume, context) {
      const directory = pathOf(pod, volume);
      const files: Files = new Map();
      await Promise.all([
        fill(files, { ...context, pod, tokens: host.tokens, allocatable: host.allocatable() }, volume),
        medium === 'memory' ? makeTmpfs(host, directory, 0o755) : host.files.makeDirectory(directory, 0o755),
      ]);
      const gid = pod.spec?.securityContext?.fsGroup;
      await host.files.writeAtomically(directory, files, {
        nowMs: host.clock.nowMs(),
        ...(gid === undefined ? {} : { gid }),
      });
    },
  };
}

interface Keys {
  readonly data: ConfigData | undefined;
  readonly items: readonly KeyToPath[] | undefined;
  readonly mode: number;
  readonly optional: boolean;
  /** Beginning of the message for a missing key. */
  readonly missing: string;
}

export function addKeys(files: Files, budget: ExpansionBudget, { data, items, mode, optional, missing }: Keys): void {
  if (data === undefined) return;
  const add = (path: string, bytes: Uint8Array, of: number): void => {
    budget.take(bytes.length);
    files.set(path, { bytes, mode: of });
  };
  if (items === undefined || items.length === 0) {
    for (const [key, bytes] of data) add(key, bytes, mode);
    return;
  }
  for (const item of items) {
    const bytes = data.get(item.key);
    if (bytes === undefined) {
      if (optional) continue;
      throw new Error(`${missing}: ${item.key}`);
    }
    add(item.path, bytes, item.mode ?? mode);
  }
}

export function addDownward(
  files: Files,
  input: PayloadInput,
  items: readonly DownwardAPIVolumeFile[],
  mode: number,
): void {
  for (const item of items) {
    let text = '';
    if (item.fieldRef !== undefined) text = fieldValue(input.pod, item.fieldRef.fieldPath, input);
    else if (item.resourceFieldRef !== undefined) {
      const { containerName } = item.resourceFieldRef;
      const container = [...(input.pod.spec?.containers ?? []), ...(input.pod.spec?.initContainers ?? [])].find(
        (each) => each.name === containerName,
      );
      if (container === undefined) throw new Error(`container ${containerName} not found`);
      text = resourceValue(item.resourceFieldRef, container, input.allocatable);
    }
    const bytes = Buffer.from(text, 'utf8');
    input.budget.take(bytes.length);
    files.set(item.path, { bytes, mode: item.mode ?? mode });
  }
}
