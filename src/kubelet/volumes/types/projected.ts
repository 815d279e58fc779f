/** Files of several sources in one directory. Source: pkg/volume/projected. */
import type { ConfigMapProjection, Pod, SecretProjection, VolumeProjection } from '../../../api/generated/core/v1.ts';
import { addDownward, addKeys, DEFAULT_MODE, type Files, type PayloadInput, payloadVolumes } from './payload.ts';
import type { DirectType } from './type.ts';

const DEFAULT_TOKEN_SECONDS = 3600;

export const projected: DirectType = {
  way: 'direct',
  source: 'projected',
  isReadOnly: () => true,
  apiObject: ({ projected: source }) =>
    source?.sources?.some(({ downwardAPI }) => downwardAPI === undefined) === true
      ? 'secrets, config maps or tokens in a projected volume'
      : undefined,
  create: (host) =>
    payloadVolumes(host, 'projected', 'memory', async (files, input, { projected: source }) => {
      const mode = source?.defaultMode ?? DEFAULT_MODE;
      const parts = await Promise.all(
        (source?.sources ?? []).map(async (each) => {
          const part: Files = new Map();
          await addProjection(part, input, each, mode);
          return part;
        }),
      );
      for (const part of parts) for (const [path, file] of part) files.set(path, file);
    }),
};

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
  const { items } = source;
  addKeys(files, input.budget, {
    data,
    items,
    mode,
    optional,
    missing: 'configmap references non-existent config key',
  });
}

async function addSecret(files: Files, input: PayloadInput, source: SecretProjection, mode: number): Promise<void> {
  const optional = source.optional === true;
  const data = await input.config.secret(input.pod, source.name ?? '', optional);
  const { items } = source;
  addKeys(files, input.budget, { data, items, mode, optional, missing: 'references non-existent secret key' });
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
