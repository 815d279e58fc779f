/**
 * File contents of configMap, secret, downwardAPI and projected volumes. Source:
 * pkg/volume/{configmap,secret,downwardapi,projected}.
 */
import type {
  ConfigMapProjection,
  DownwardAPIVolumeFile,
  KeyToPath,
  Pod,
  SecretProjection,
  Volume,
  VolumeProjection,
} from '../../api/generated/core/v1.ts';
import type { Quantity } from '../../base/quantity.ts';
import { canonicalJson } from '../core/pod-plan/hash.ts';
import type { ProjectedFile } from '../files-port.ts';
import type { ExpansionBudget } from '../pods/containers/expansion.ts';
import { fieldValue, resourceValue } from '../pods/containers/field-path.ts';
import type { ConfigData, ConfigReader } from './config-objects.ts';
import type { TokenSource } from './tokens.ts';

export interface PayloadInput {
  readonly pod: Pod;
  readonly config: ConfigReader;
  readonly tokens: Pick<TokenSource, 'token'>;
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  readonly allocatable: Readonly<Record<string, Quantity>>;
  /** Shared budget for all files of the pod. */
  readonly budget: ExpansionBudget;
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

type Files = Map<string, ProjectedFile>;

const DEFAULT_MODE = 0o644;
const DEFAULT_TOKEN_SECONDS = 3600;

/** Returns undefined for another kind of volume. */
export async function volumePayload(input: PayloadInput, volume: Volume): Promise<Files | undefined> {
  const files: Files = new Map();
  if (volume.configMap !== undefined) {
    const { name = '', items, defaultMode, optional = false } = volume.configMap;
    const data = await input.config.configMap(input.pod, name, optional);
    addKeys(
      files,
      input.budget,
      data,
      items,
      defaultMode ?? DEFAULT_MODE,
      optional,
      `configmap references non-existent config key`,
    );
    return files;
  }
  if (volume.secret !== undefined) {
    const { secretName = '', items, defaultMode, optional = false } = volume.secret;
    const data = await input.config.secret(input.pod, secretName, optional);
    addKeys(
      files,
      input.budget,
      data,
      items,
      defaultMode ?? DEFAULT_MODE,
      optional,
      `references non-existent secret key`,
    );
    return files;
  }
  if (volume.downwardAPI !== undefined) {
    addDownward(files, input, volume.downwardAPI.items ?? [], volume.downwardAPI.defaultMode ?? DEFAULT_MODE);
    return files;
  }
  if (volume.projected !== undefined) {
    const mode = volume.projected.defaultMode ?? DEFAULT_MODE;
    const parts = await Promise.all(
      (volume.projected.sources ?? []).map(async (source) => {
        const part: Files = new Map();
        await addProjection(part, input, source, mode);
        return part;
      }),
    );
    for (const part of parts) for (const [path, file] of part) files.set(path, file);
    return files;
  }
  return undefined;
}

async function addProjection(files: Files, input: PayloadInput, source: VolumeProjection, mode: number): Promise<void> {
  if (source.configMap !== undefined) await addConfigMap(files, input, source.configMap, mode);
  if (source.secret !== undefined) await addSecret(files, input, source.secret, mode);
  if (source.downwardAPI !== undefined) addDownward(files, input, source.downwardAPI.items ?? [], mode);
  // Skipping an unsupported source would omit its files without an error.
  for (const kind of ['clusterTrustBundle', 'podCertificate'] as const) {
    if (Object.hasOwn(source, kind)) throw new Error(`${kind} projection is not supported on this node`);
  }
  if (source.serviceAccountToken !== undefined) {
    const { audience = '', expirationSeconds = DEFAULT_TOKEN_SECONDS, path } = source.serviceAccountToken;
    const token = await input.tokens.token(input.pod, audience, expirationSeconds);
    const owner = commonUser(input.pod);
    const restricted = owner !== undefined || input.pod.spec?.securityContext?.fsGroup !== undefined;
    files.set(path, {
      bytes: Buffer.from(token, 'utf8'),
      mode: restricted ? 0o600 : mode,
      ...(owner === undefined ? {} : { uid: owner }),
    });
  }
}

async function addConfigMap(
  files: Files,
  input: PayloadInput,
  source: ConfigMapProjection,
  mode: number,
): Promise<void> {
  const optional = source.optional === true;
  const data = await input.config.configMap(input.pod, source.name ?? '', optional);
  addKeys(files, input.budget, data, source.items, mode, optional, 'configmap references non-existent config key');
}

async function addSecret(files: Files, input: PayloadInput, source: SecretProjection, mode: number): Promise<void> {
  const optional = source.optional === true;
  const data = await input.config.secret(input.pod, source.name ?? '', optional);
  addKeys(files, input.budget, data, source.items, mode, optional, 'references non-existent secret key');
}

function addKeys(
  files: Files,
  budget: ExpansionBudget,
  data: ConfigData | undefined,
  items: readonly KeyToPath[] | undefined,
  mode: number,
  optional: boolean,
  missing: string,
): void {
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

function addDownward(files: Files, input: PayloadInput, items: readonly DownwardAPIVolumeFile[], mode: number): void {
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

/** User that all containers run as, if there is one. Then only that user needs to read the token. */
function commonUser(pod: Pod): number | undefined {
  const shared = pod.spec?.securityContext?.runAsUser;
  const users = new Set(
    [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map(
      (container) => container.securityContext?.runAsUser ?? shared,
    ),
  );
  const [user] = users;
  return users.size === 1 ? user : undefined;
}
