/**
 * Validates webhook responses and maps rejections to errors. Source:
 * k8s.io/apiserver/pkg/admission/plugin/webhook/{request/admissionreview.go,errors/statuserror.go}.
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError, type Status } from '../../../api/meta/status.ts';
import { fieldOf, isObject } from '../../../api/structural/schema.ts';
import { decodeJson } from '../../http/decode.ts';
import { detailsOf } from './refusal-details.ts';

const GROUP = 'admission.k8s.io';
const MAX_WARNINGS = 64;
const MAX_ANNOTATIONS = 64;
const MAX_MESSAGE = 32 * 1024;
/** Length limits of audit annotation keys (without the name of the webhook) and of warnings. */
const MAX_NAME = 256;
const MAX_WARNING = 4096;

export interface WebhookDecision {
  readonly allowed: boolean;
  readonly patch: JsonValue | undefined;
  readonly result: JsonObject | undefined;
  readonly warnings: readonly string[];
  readonly annotations: readonly (readonly [string, string])[];
}

/** Parses a webhook response. Throws an Error with the problem of an invalid response. */
export function readAnswer(answer: JsonValue, uid: string, version: string, mutating: boolean): WebhookDecision {
  const review = isObject(answer) ? answer : {};
  const text = (object: JsonObject, name: string): string => {
    const value = fieldOf(object, name);
    return typeof value === 'string' ? value : '';
  };
  // Responses of v1beta1 need not have apiVersion, kind and uid.
  const strict = version !== 'v1beta1';
  const typed = text(review, 'apiVersion') === `${GROUP}/${version}` && text(review, 'kind') === 'AdmissionReview';
  if (strict && !typed) {
    const got = `${text(review, 'apiVersion')}, Kind=${text(review, 'kind')}`.slice(0, 256);
    throw new Error(`expected webhook response of ${GROUP}/${version}, Kind=AdmissionReview, got ${got}`);
  }
  const response = fieldOf(review, 'response');
  if (!isObject(response)) throw new Error('webhook response was absent');
  if (strict && text(response, 'uid') !== uid) {
    throw new Error(
      `expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(text(response, 'uid').slice(0, 256))}`,
    );
  }
  const patch = text(response, 'patch');
  const type = text(response, 'patchType');
  if (!mutating) {
    if (strict && patch !== '') throw new Error('for validating webhook, response.patch must be empty');
    if (strict && type !== '') throw new Error('for validating webhook, response.patchType must be empty');
  } else if (strict) {
    if (patch !== '' && type === '') {
      throw new Error('webhook returned response.patch but not response.patchType');
    }
    if (patch === '' && type !== '') {
      throw new Error('webhook returned response.patchType but not response.patch');
    }
    if (type !== '' && type !== 'JSONPatch') {
      throw new Error(`invalid value of response.patchType ${JSON.stringify(type.slice(0, 64))}: must be "JSONPatch"`);
    }
  }
  const warnings = fieldOf(response, 'warnings');
  const annotations = fieldOf(response, 'auditAnnotations');
  const result = fieldOf(response, 'status');
  return {
    allowed: fieldOf(response, 'allowed') === true,
    patch: patch === '' || !mutating ? undefined : decodeJson(Buffer.from(patch, 'base64')),
    result: isObject(result) ? result : undefined,
    warnings: (Array.isArray(warnings) ? warnings : [])
      .filter((each) => typeof each === 'string')
      .slice(0, MAX_WARNINGS)
      .map((each) => each.slice(0, MAX_WARNING)),
    annotations: Object.entries(isObject(annotations) ? annotations : {})
      .slice(0, MAX_ANNOTATIONS)
      .map(([key, value]) => [key.slice(0, MAX_NAME), String(value).slice(0, MAX_MESSAGE)]),
  };
}

/** The rejection by webhook `name` as an error, with the webhook's own message and code. */
export function refusalOf(name: string, result: JsonObject | undefined): ApiError {
  const status = (result ?? {}) as Partial<Status>;
  const code = typeof status.code === 'number' && status.code >= 400 && status.code < 600 ? status.code : 400;
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  const explanation = [status.message, status.reason].find((each) => typeof each === 'string' && each !== '');
  const message =
    explanation === undefined ? `${denied} without explanation` : `${denied}: ${explanation.slice(0, MAX_MESSAGE)}`;
  const details = isObject(result) ? detailsOf(fieldOf(result, 'details')) : undefined;
  return ApiError.fromStatus(
    {
      message,
      ...(typeof status.reason === 'string' ? { reason: status.reason } : {}),
      ...(details === undefined ? {} : { details }),
    },
    code,
  );
}
