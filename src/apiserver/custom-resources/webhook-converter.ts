/**
 * Conversion webhooks of custom resources. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
 */
import type { WebhookConversion } from '../../api/generated/apiextensions/v1.ts';
import { REVIEW_VERSIONS } from '../../api/kinds/cluster/customresourcedefinitions/conversion-validation.ts';
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { fieldOf, isObject } from '../../api/structural/schema.ts';
import { messageOf } from '../../base/errors.ts';
import type { WebhookCaller as Caller, WebhookClient } from '../webhooks/caller.ts';

const TIMEOUT_MS = 30_000;
const GROUP = 'apiextensions.k8s.io';

export interface WebhookCaller {
  readonly caller: Pick<Caller, 'post'>;
  newUid(): string;
}

/** Converts all documents to `apiVersion`. Throws ApiError 'InternalError' with the webhook and its failure. */
export async function convertByWebhook(
  { caller, newUid }: WebhookCaller,
  webhook: WebhookConversion,
  documents: readonly JsonObject[],
  apiVersion: string,
): Promise<JsonObject[]> {
  const version = webhook.conversionReviewVersions.find((each) => REVIEW_VERSIONS.includes(each)) ?? 'v1';
  const uid = newUid();
  const [first = {}] = documents;
  const of = `conversion webhook for ${shownText(fieldOf(first, 'apiVersion'))}, Kind=${shownText(fieldOf(first, 'kind'))}`;
  const error = (what: string): ApiError => new ApiError('InternalError', `${of} ${what}`);
  const failed = (why: string): ApiError => error(`failed: ${why}`);
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
    throw error(`returned ${converted.length} objects, expected ${documents.length}`);
  }
  for (const [index, document] of converted.entries()) {
    const wrong = (why: string): ApiError =>
      error(
        documents.length === 1
          ? `returned invalid object: ${why}`
          : `returned invalid converted object at index ${index}: ${why}`,
      );
    checkIdentity(documents[index] ?? {}, document, apiVersion, wrong);
  }
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
    throw failed(`the response is not a ConversionReview of ${GROUP}/${version}`);
  }
  const response = fieldOf(review, 'response');
  if (!isObject(response)) throw failed('no response provided');
  if (version === 'v1' && fieldOf(response, 'uid') !== uid)
    throw failed('the UID of the response differs from the UID of the request');
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
  const version = fieldOf(after, 'apiVersion');
  if (version !== apiVersion)
    throw failed(`invalid groupVersion (expected ${apiVersion}, received ${shownText(version)})`);
  const [wanted, kind] = [fieldOf(before, 'kind'), fieldOf(after, 'kind')];
  if (kind !== wanted) throw failed(`invalid kind (expected ${shownText(wanted)}, received ${shownText(kind)})`);
  const old = fieldOf(before, 'metadata');
  const now = fieldOf(after, 'metadata');
  for (const [name, shown] of IDENTITY) {
    const is = isObject(now) ? fieldOf(now, name) : undefined;
    const was = isObject(old) ? fieldOf(old, name) : undefined;
    if (is !== was) throw failed(`must have the same ${shown}: ${shownText(was)} != ${shownText(is)}`);
  }
}

/** Metadata fields that a converter must not change, and their names in messages. */
const IDENTITY = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** A value from the webhook, shortened for a message. '' for null, where Go shows an empty string. */
function shownText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 253);
}
