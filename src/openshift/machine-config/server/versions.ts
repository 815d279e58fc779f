/**
 * Selects the Ignition version for a client, and converts a rendered configuration to this version. Source:
 * pkg/server/api.go of openshift/machine-config-operator; Ignition configuration specification 2.2.0.
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';

export type IgnitionVersion = '2.2.0' | '3.1.0' | '3.2.0' | '3.3.0';

const IGNITION = 'application/vnd.coreos.ignition+json';

interface Accepted {
  readonly type: string;
  readonly version: readonly number[] | undefined;
  readonly quality: number;
}

/**
 * Version to serve for an Accept header. If the header names no Ignition type, it is 2.2.0, which upstream serves to
 * browsers. Undefined if no version in the header is supported.
 */
export function acceptedVersion(header: string): IgnitionVersion | undefined {
  const accepted = header
    .split(',')
    .map(parse)
    .filter(({ type }) => type.includes('/'))
    .toSorted((left, right) => right.quality - left.quality);
  const ignition = accepted.flatMap(({ type, version }) =>
    type === IGNITION && version !== undefined ? [version] : [],
  );
  for (const version of ignition) {
    const served = servedAs(version);
    if (served !== undefined) return served;
  }
  return ignition.length > 0 ? undefined : '2.2.0';
}

function servedAs([major = 0, minor = 0]: readonly number[]): IgnitionVersion | undefined {
  if (major === 3 && minor >= 3) return '3.3.0';
  if (major === 3 && minor === 2) return '3.2.0';
  if (major === 3 && minor === 1) return '3.1.0';
  return major === 2 && minor >= 2 ? '2.2.0' : undefined;
}

function parse(value: string): Accepted {
  const [type = '', ...parameters] = value.split(';').map((part) => part.trim());
  const given = (name: string): string | undefined =>
    parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
  const version = /^(\d{1,4})\.(\d{1,4})\.(\d{1,4})/.exec(given('version') ?? '');
  const quality = Number(given('q') ?? 1);
  return {
    type,
    version: version === null ? undefined : version.slice(1).map(Number),
    quality: Number.isFinite(quality) ? quality : 1,
  };
}

/**
 * Converts a configuration from version 3.3.0. Of the features used here, 3.2.0 and 3.1.0 lack only kernel arguments.
 */
export function convertConfig(config: JsonObject, version: IgnitionVersion): JsonObject {
  const { kernelArguments, ignition, ...rest } = config;
  const header = { ...(isObject(ignition) ? ignition : {}), version };
  if (version === '3.3.0')
    return { ignition: header, ...(kernelArguments === undefined ? {} : { kernelArguments }), ...rest };
  if (version !== '2.2.0') return { ignition: header, ...rest };
  const storage = isObject(rest['storage']) ? rest['storage'] : {};
  const files = Array.isArray(storage['files']) ? storage['files'].filter(isObject).map(oldFile) : [];
  return { ...rest, ignition: header, storage: { ...storage, files } };
}

/** Converts a file to version 2.2.0, in which every file has the fields `filesystem` and `contents`. */
function oldFile(file: JsonObject): JsonObject {
  const contents = isObject(file['contents']) ? file['contents'] : {};
  return { filesystem: 'root', ...file, contents: { source: '', verification: {}, ...contents } };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
