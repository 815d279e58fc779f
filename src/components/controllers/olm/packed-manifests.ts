/**
 * Manifests of install plans that are too large for one object of the API. Upstream keeps the bundle in a ConfigMap and
 * refers to it; here a manifest is compressed in place, so that only those who may write the plan can change it.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { InstallPlanStep } from '../../../api/kinds/olm/types.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';

/** Manifests of a plan up to here; an object of the API is 1.5 MB at most. */
export const MAX_PLAN_BYTES = 1_200_000;
/** A manifest is an object of the API itself: a document of a catalog is not larger. */
const MAX_MANIFEST_BYTES = 8 << 20;
/** Smaller manifests stay as they are, for those who read plans. */
const PACKED_FROM_BYTES = 4_096;
const FIELD = 'hyperedge.dev/gzip';

const compressed = promisify(gzip);
const expanded = promisify(gunzip);

export const sizeOf = (steps: readonly InstallPlanStep[]): number =>
  steps.reduce((sum, { resource }) => sum + Buffer.byteLength(resource.manifest ?? ''), 0);

/** The steps as they are where they fit, else with compressed manifests. */
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
