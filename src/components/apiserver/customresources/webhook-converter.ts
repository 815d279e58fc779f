/** Conversion by somebody else. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go. */
import type { WebhookConversion } from 'kubernetes-types/apiextensions/v1';
import { REVIEW_VERSIONS } from '../../../api/kinds/customresourcedefinitions/conversion-validation.ts';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { fieldOf, isObject } from '../../../api/structural/schema.ts';
import { messageOf } from '../../../base/errors.ts';
import type { WebhookCaller as Caller, WebhookClient } from '../webhooks/caller.ts';

const TIMEOUT_MS = 30_000;
const GROUP = 'apiextensions.k8s.io';

export interface WebhookCaller {
  readonly caller: Pick<Caller, 'post'>;
  newUid(): string;
}

/** All documents in `apiVersion`. Throws ApiError 'InternalError' naming the webhook and what it did. */
export async function convertByWebhook(
  { caller, newUid }: WebhookCaller,
  webhook: WebhookConversion,
  group: string,
  documents: readonly JsonObject[],
  apiVersion: string,
): Promise<JsonObject[]> {
  const version = webhook.conversionReviewVersions.find((each) => REVIEW_VERSIONS.includes(each)) ?? 'v1';
  const uid = newUid();
  const failed = (why: string): ApiError =>
    new ApiError('InternalError', `conversion webhook for ${group}, to ${apiVersion}, failed: ${why}`);
  let answer: JsonValue;
  try {
    answer = await caller.post(
      webhook.clientConfig as WebhookClient,
      {
        kind: 'ConversionReview',
        apiVersion: `${GROUP}/${version}`,
        request: { uid, desiredAPIVersion: apiVersion, objects: [...documents] },
      },
      TIMEOUT_MS,
    );
  } catch (error) {
    throw failed(messageOf(error));
  }
  const converted = convertedObjects(answer, version, uid, failed);
  if (converted.length !== documents.length) {
    throw failed(`webhook returned ${converted.length} objects, expected ${documents.length}`);
  }
  for (const [index, document] of converted.entries())
    checkIdentity(documents[index] ?? {}, document, apiVersion, failed);
  return converted;
}

function convertedObjects(
  answer: JsonValue,
  version: string,
  uid: string,
  failed: (why: string) => ApiError,
): JsonObject[] {
  const review = isObject(answer) ? answer : {};
  if (fieldOf(review, 'apiVersion') !== `${GROUP}/${version}` || fieldOf(review, 'kind') !== 'ConversionReview') {
    throw failed(`the answer is no ConversionReview of ${GROUP}/${version}`);
  }
  const response = fieldOf(review, 'response');
  if (!isObject(response)) throw failed('no response provided');
  if (version === 'v1' && fieldOf(response, 'uid') !== uid)
    throw failed('the answer is to another request: its uid differs');
  const result = fieldOf(response, 'result');
  const status = isObject(result) ? fieldOf(result, 'status') : undefined;
  if (status !== 'Success') {
    const message = isObject(result) ? fieldOf(result, 'message') : undefined;
    throw failed(
      typeof message === 'string' && message !== '' ? message.slice(0, 1024) : 'the response status was not Success',
    );
  }
  const objects = fieldOf(response, 'convertedObjects');
  return (Array.isArray(objects) ? objects : []).map((each) => (isObject(each) ? each : {}));
}

function checkIdentity(
  before: JsonObject,
  after: JsonObject,
  apiVersion: string,
  failed: (why: string) => ApiError,
): void {
  if (fieldOf(after, 'apiVersion') !== apiVersion)
    throw failed(`an object was returned in ${JSON.stringify(fieldOf(after, 'apiVersion') ?? '')}`);
  if (fieldOf(after, 'kind') !== fieldOf(before, 'kind')) throw failed('an object was returned with another kind');
  const old = fieldOf(before, 'metadata');
  const now = fieldOf(after, 'metadata');
  for (const name of ['name', 'namespace', 'uid']) {
    const value = isObject(now) ? fieldOf(now, name) : undefined;
    if (value !== (isObject(old) ? fieldOf(old, name) : undefined))
      throw failed(`an object was returned with another metadata.${name}`);
  }
}
