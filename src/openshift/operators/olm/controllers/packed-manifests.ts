/**
 * Compression of install plans that are too large for an API object. Upstream stores a large bundle in a ConfigMap and
 * references it. Here the manifests are compressed inside the plan, so that only users who may write the plan can
 * change them.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import type { InstallPlanStep } from '../kinds/types.ts';

/** Maximum size of the manifests of a plan. An API object is limited to 1.5 MB. */
export const MAX_PLAN_BYTES = 1_200_000;
/** Maximum size of a manifest after decompression. It equals the limit of a catalog document. */
const MAX_MANIFEST_BYTES = 8 << 20;
/** Minimum size of a manifest that is compressed. Smaller manifests stay readable. */
const PACKED_FROM_BYTES = 4_096;
const FIELD = 'hyperedge.dev/gzip';

const compressed = promisify(gzip);
const expanded = promisify(gunzip);

export const sizeOf = (steps: readonly InstallPlanStep[]): number =>
  steps.reduce((sum, { resource }) => sum + Buffer.byteLength(resource.manifest ?? ''), 0);

/** Returns the steps unchanged if they fit into a plan; otherwise compresses their larger manifests. */
export async function packSteps(steps: readonly InstallPlanStep[]): Promise<InstallPlanStep[]> {
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

/** Returns the object of a step. Throws a CodedError 'catalog' if the manifest is invalid. */
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
