/** Conversion between versions of custom resources. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion. */
import type { CustomResourceDefinition } from '../../api/generated/apiextensions/v1.ts';
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { validateAnnotations, validateLabels } from '../../api/meta/validation.ts';
import { fieldOf, isObject } from '../../api/structural/schema.ts';
import type { WebhookCaller } from './webhook-converter.ts';
import { convertByWebhook } from './webhook-converter.ts';

export interface Converter {
  /**
   * Returns the documents converted to `apiVersion`, in the same order. Does not change its arguments. Rejects with an
   * ApiError.
   */
  convert(documents: readonly JsonObject[], apiVersion: string): JsonObject[] | Promise<JsonObject[]>;
}

/** Strategy None: only apiVersion changes. Fields unknown to the other schema are pruned on read. */
const renaming: Converter = {
  convert: (documents, apiVersion) => documents.map((each) => ({ ...each, apiVersion })),
};

export function converterOf(definition: CustomResourceDefinition, webhooks: WebhookCaller): Converter {
  const conversion = definition.spec.conversion;
  if (conversion?.strategy !== 'Webhook' || conversion.webhook === undefined) return renaming;
  const { webhook } = conversion;
  return {
    async convert(documents, apiVersion) {
      const other = documents.filter((each) => each['apiVersion'] !== apiVersion);
      const converted = await convertByWebhook(webhooks, webhook, other, apiVersion);
      let next = 0;
      return documents.map((each) => {
        if (each['apiVersion'] === apiVersion) return each;
        return onlyLabels(converted[next++] ?? {}, each);
      });
    },
  };
}

/**
 * Keeps all metadata except labels and annotations, which a converter may change. Throws an ApiError if the converted
 * labels or annotations are invalid. Source: k8s.io/apiextensions-apiserver, restoreObjectMeta.
 */
function onlyLabels(converted: JsonObject, original: JsonObject): JsonObject {
  const before = fieldOf(original, 'metadata');
  const after = fieldOf(converted, 'metadata');
  const metadata: JsonObject = isObject(before) ? { ...before } : {};
  for (const name of ['labels', 'annotations'] as const) {
    const value = isObject(after) ? fieldOf(after, name) : undefined;
    if (value === undefined || value === null) delete metadata[name];
    else metadata[name] = checked(name, value);
  }
  return { ...converted, metadata };
}

const MAX_SHOWN = 253;

function checked(name: 'labels' | 'annotations', value: JsonValue): JsonObject {
  const wrong = (why: string): ApiError =>
    new ApiError('InternalError', `conversion webhook returned invalid metadata.${name}: ${why.slice(0, MAX_SHOWN)}`);
  if (!isObject(value)) throw wrong('must be an object');
  const texts: Record<string, string> = {};
  for (const [key, each] of Object.entries(value)) {
    if (typeof each !== 'string') throw wrong(`${JSON.stringify(key)} is not a string`);
    texts[key] = each;
  }
  const [first] = (name === 'labels' ? validateLabels : validateAnnotations)(texts, `metadata.${name}`);
  if (first !== undefined) throw wrong(`${first.field}: ${first.message}`);
  return value;
}
