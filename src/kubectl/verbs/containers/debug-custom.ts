/** `debug --custom FILE`: merges a partial container into the debug container. Source: pkg/cmd/debug/debug.go. */
import { messageOf } from '../../../base/errors.ts';
import { ClientError } from '../../core/errors.ts';
import { fieldAt, textAt } from '../../core/objects.ts';
import { openApiPath } from '../../core/openapi.ts';
import { threeWayMerge } from '../../core/three-way.ts';
import { documentsIn } from '../../documents.ts';
import type { VerbContext } from '../../port.ts';
import type { Session } from '../../session.ts';
import type { Fields } from './debug-profiles.ts';

const CONTAINER_SCHEMA = 'io.k8s.api.core.v1.Container';

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The container in the file of `--custom`; undefined if the flag is missing or the file is empty. */
export async function customContainerOf({ flags, system }: VerbContext): Promise<Fields | undefined> {
  const file = flags.text('custom');
  if (file === '') return undefined;
  let text: string;
  try {
    text = Buffer.from(await system.readFile(file)).toString('utf8');
  } catch (error) {
    throw new ClientError(`must pass a container spec json file for custom profile: ${messageOf(error)}`);
  }
  const invalid = (reason: string): ClientError =>
    new ClientError(`${file} does not contain a valid container spec: ${reason}`);
  const documents = await documentsIn(file, text).catch((error: unknown) => {
    throw invalid(messageOf(error));
  });
  const container = withoutNulls(documents[0]);
  if (container === undefined) return undefined;
  if (!isFields(container)) throw invalid('the document must be an object with fields of a container');
  return container;
}

/** Throws ClientError for fields that `debug` sets itself or does not permit. */
export function checkCustom(custom: Fields | undefined): void {
  const isSet = (field: string): boolean => {
    const value = custom?.[field];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== '';
  };
  if (['name', 'command', 'image', 'lifecycle', 'volumeDevices'].some(isSet))
    throw new ClientError('name, command, image, lifecycle and volume devices are not modifiable via custom profile');
}

/** Merges the custom fields into a container, as the server does for a strategic merge patch. */
export type CustomMerge = (container: Fields) => Fields;

/** Reads the merge keys from the server. Unknown fields of a container are reported and ignored. */
export async function customMerge(session: Session, custom: Fields | undefined): Promise<CustomMerge> {
  if (custom === undefined) return (container) => container;
  const pods = await session.resource('pods');
  const schemas = (await session.openApi(openApiPath(pods))).components?.schemas ?? {};
  const root = schemas[CONTAINER_SCHEMA];
  if (root === undefined)
    throw new ClientError(`--custom: the server publishes no schema ${CONTAINER_SCHEMA}; omit --custom`);
  const { io, flags } = session.context;
  const known = Object.entries(custom).filter(([field, value]) => {
    if (Object.hasOwn(root.properties ?? {}, field)) return !Array.isArray(value) || value.length > 0;
    io.err(`Warning: ${flags.text('custom')}: ${JSON.stringify(field)} is no field of a container and is ignored\n`);
    return false;
  });
  const fields = Object.fromEntries(known.filter(([field]) => !['name', 'image'].includes(field)));
  return (container) => {
    const merged = threeWayMerge(undefined, fields, container, { schemas, root }) as Fields;
    const ordered = Object.entries(merged).map(([field, value]): [string, unknown] => {
      const key = root.properties?.[field]?.['x-kubernetes-patch-merge-key'];
      return [field, key === undefined || !Array.isArray(value) ? value : givenFirst(value, fields[field], key)];
    });
    return Object.fromEntries(ordered);
  };
}

/**
 * Reorders the elements as kubectl does: the elements of the file come first. A variable can refer only to preceding
 * variables.
 */
function givenFirst(merged: readonly unknown[], given: unknown, key: string): unknown[] {
  const keys = new Set(Array.isArray(given) ? given.map((each) => fieldAt(each, key)) : []);
  const isGiven = (each: unknown): boolean => keys.has(fieldAt(each, key));
  return [...merged.filter(isGiven), ...merged.filter((each) => !isGiven(each))];
}

/** The pod's containers, with the merge applied to the named one. Throws ClientError if no container has the name. */
export function withCustom(spec: Fields, container: string, pod: string, merge: CustomMerge): Fields {
  const containers = spec['containers'] as readonly Fields[];
  if (!containers.some(({ name }) => name === container))
    throw new ClientError(`unable to find the ${container} container in the pod ${pod}`);
  return { ...spec, containers: containers.map((each) => (each['name'] === container ? merge(each) : each)) };
}

/** Warns if capabilities of the debug container have no effect, because the pod runs as another user than root. */
export function warnOfUser({ io }: VerbContext, podSpec: unknown, container: unknown): void {
  const user = fieldAt(podSpec, 'securityContext', 'runAsUser') ?? 0;
  const context = fieldAt(container, 'securityContext');
  const added = fieldAt(context, 'capabilities', 'add');
  const hasRights = textAt(context, 'privileged') === 'true' || (Array.isArray(added) && added.length > 0);
  if (user === 0 || fieldAt(context, 'runAsUser') === 0 || !hasRights) return;
  io.err(
    'Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may not work. Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".\n',
  );
}

/** The value without fields and elements that are null. */
function withoutNulls(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return value.map(withoutNulls).filter((each) => each !== undefined);
  if (!isFields(value)) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, unknown] => [name, withoutNulls(inner)]);
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
}
