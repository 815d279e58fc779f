/**
 * Compression of install plans whose manifests exceed the size of an API object. Upstream stores the bundle in a
 * ConfigMap and references it. Here the manifests are compressed in place, so that only users who may write the plan
 * can change them.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import type { InstallPlanStep } from '../kinds/types.ts';

/** Maximum size of a plan's manifests. An API object is limited to 1.5 MB. */
export const MAX_PLAN_BYTES = 1_200_000;
/** Maximum size of an uncompressed manifest, which equals that of a catalog document. */
const MAX_MANIFEST_BYTES = 8 << 20;
/** Smaller manifests stay uncompressed, so that plans remain readable. */
const PACKED_FROM_BYTES = 4_096;
const FIELD = 'hyperedge.dev/gzip';

const compressed = promisify(gzip);
const expanded = promisify(gunzip);

export const sizeOf = (steps: readonly InstallPlanStep[]): number =>
  steps.reduce((sum, { resource }) => sum + Buffer.byteLength(resource.manifest ?? ''), 0);

/** Returns the steps unchanged if they fit, otherwise with compressed manifests. */
export async function packed(steps: readonly InstallPlanStep[]): Promise<InstallPlanStep[]> {
  if (sizeOf(steps) <= MAX_PLAN_BYTES) return [...steps];
  const result: InstallPlanStep[] = [];
  for (const step of steps) {
    const { manifest = '' } = step.resource;
    if (manifest.length < PACKED_FROM_BYTES) result.push(step);
    else {
      const data = (await compressed(manifest)).toString('base64');
      result.push({ ...step, resource: { ...step.resource, manifest: JSON.stringify({ [FIELD]: data }) } });
    }
  }
  return result;
}

/** The object of a step. Throws a CodedError 'catalog'. */
export async function unpacked({ resource }: InstallPlanStep): Promise<unknown> {
  const { kind, name, manifest = '{}' } = resource;
  try {
    const object: unknown = JSON.parse(manifest);
    const data = typeof object === 'object' && object !== null ? Reflect.get(object, FIELD) : undefined;
    if (typeof data !== 'string') return object;
    const text = await expanded(Buffer.from(data, 'base64'), { maxOutputLength: MAX_MANIFEST_BYTES });
    return JSON.parse(text.toString('utf8'));
  } catch (error) {
    throw new CodedError('catalog', `manifest of ${kind} ${name} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
