/**
 * Validating and mutating webhook configurations. Source:
 * k8s.io/kubernetes/pkg/apis/admissionregistration/{v1,validation}, k8s.io/apiserver/pkg/util/webhook.
 */

import { dns1035LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import type { MutatingWebhook, WebhookClientConfig } from '../generated/admissionregistration/v1.ts';
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { KubeObject } from '../meta/object.ts';
import { nextGeneration } from '../meta/object.ts';
import { isSet } from '../meta/validation.ts';
import type { KindAlias, WriteStrategy } from '../registry/definition.ts';
import { keepGeneration, metadataOf } from '../registry/strategies.ts';
import { isBeta } from '../registry/versions.ts';
import { validateNameRule, validateOneOf, validateOptionalOneOf } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';
import { webhookServiceErrors, webhookUrlErrors } from '../validation/webhook-client.ts';
import { setRuleDefaults, validateMatchConditions, validateRules } from './rules.ts';

const DEFAULT_TIMEOUT_SECONDS = 10;
const OLDER_TIMEOUT_SECONDS = 30;
const MAX_TIMEOUT_SECONDS = 30;
const HTTPS_PORT = 443;
const REVIEW_VERSIONS = ['v1', 'v1beta1'];
const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];
/**
 * Side effects that are accepted in v1beta1, and on update if the stored object has them. Such webhooks fail dry runs.
 */
const OLDER_SIDE_EFFECTS = [...SIDE_EFFECTS, 'Some', 'Unknown'];

/** A configuration of validating or mutating webhooks. Validating webhooks have no reinvocationPolicy. */
interface Configuration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

export function setWebhookDefaults(webhook: MutatingWebhook): void {
  webhook.failurePolicy ??= 'Fail';
  webhook.matchPolicy ??= 'Equivalent';
  webhook.namespaceSelector ??= {};
  webhook.objectSelector ??= {};
  webhook.timeoutSeconds ??= DEFAULT_TIMEOUT_SECONDS;
  setRuleDefaults(webhook.rules);
  if (webhook.clientConfig?.service !== undefined) webhook.clientConfig.service.port ??= HTTPS_PORT;
}

/** Alias for v1beta1, whose defaults differ from v1. */
export const olderWebhooks = <T extends KubeObject>(): KindAlias<T> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1beta1',
  deprecated: { since: '1.16', removed: '1.22' },
  convertTo(object) {
    const configuration = object as Configuration;
    for (const webhook of configuration.webhooks ?? []) {
      webhook.failurePolicy ??= 'Ignore';
      webhook.matchPolicy ??= 'Exact';
      webhook.timeoutSeconds ??= OLDER_TIMEOUT_SECONDS;
      if (!isSet(webhook.sideEffects)) webhook.sideEffects = 'Unknown';
      if ((webhook.admissionReviewVersions ?? []).length === 0) webhook.admissionReviewVersions = ['v1beta1'];
    }
    return object as T;
  },
  convertFrom: (configuration) => configuration,
});

export const webhookStrategy: WriteStrategy<Configuration> = {
  prepareForCreate(configuration) {
    metadataOf(configuration).generation = 1;
  },
  prepareForUpdate(configuration, old) {
    keepGeneration(configuration, old);
    if (!semanticEqual(configuration.webhooks, old.webhooks)) {
      metadataOf(configuration).generation = nextGeneration(old);
    }
  },
  validate(configuration, old) {
    const names = new Set<string>();
    // v1beta1 allowed duplicate names.
    const mayRepeat = isBeta(configuration) || (old !== undefined && hasRepeated(old));
    const mayBeForeign = (old?.webhooks ?? []).some(hasOnlyUnknownVersions);
    return (configuration.webhooks ?? []).flatMap((webhook, index) => {
      const at = `webhooks[${index}]`;
      const errors = validateWebhook(webhook, at, mayBeForeign);
      const name = webhook.name ?? '';
      if (!mayRepeat && name !== '' && names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
      names.add(name);
      return errors;
    });
  },
  validateCreate: (configuration) => validateSideEffects(configuration, { strict: !isBeta(configuration) }),
  validateUpdate: (configuration, old) =>
    validateSideEffects(configuration, {
      strict: !isBeta(configuration) && validateSideEffects(old, { strict: true }).length === 0,
    }),
};

/** Whether the webhook supports only versions of AdmissionReview that this server does not know. */
const hasOnlyUnknownVersions = ({ admissionReviewVersions: versions = [] }: MutatingWebhook): boolean =>
  versions.length > 0 && !versions.some((version) => REVIEW_VERSIONS.includes(version));

const hasRepeated = ({ webhooks = [] }: Configuration): boolean =>
  new Set(webhooks.map((each) => each.name)).size < webhooks.length;

function validateSideEffects({ webhooks = [] }: Configuration, { strict }: { readonly strict: boolean }): FieldError[] {
  const known = strict ? SIDE_EFFECTS : OLDER_SIDE_EFFECTS;
  return webhooks.flatMap(({ sideEffects }, index) => {
    const at = `webhooks[${index}].sideEffects`;
    if (!isSet(sideEffects)) return [fieldError.required(at, `must specify one of ${known.join(', ')}`)];
    return validateOneOf(sideEffects, known, at);
  });
}

function validateWebhook(webhook: MutatingWebhook, at: string, mayBeForeign: boolean): FieldError[] {
  const errors = [
    ...validateFullName(webhook.name, `${at}.name`),
    ...validateRules(webhook.rules, `${at}.rules`),
    ...validateOptionalOneOf(webhook.failurePolicy, ['Fail', 'Ignore'], `${at}.failurePolicy`),
    ...validateOptionalOneOf(webhook.matchPolicy, ['Equivalent', 'Exact'], `${at}.matchPolicy`),
    ...validateOptionalOneOf(webhook.reinvocationPolicy, ['IfNeeded', 'Never'], `${at}.reinvocationPolicy`),
  ];
  const seconds = webhook.timeoutSeconds;
  if (seconds !== undefined && (seconds < 1 || seconds > MAX_TIMEOUT_SECONDS)) {
    const detail = `the timeout value must be between 1 and ${MAX_TIMEOUT_SECONDS} seconds`;
    errors.push(fieldError.invalid(`${at}.timeoutSeconds`, seconds, detail));
  }
  if (webhook.namespaceSelector !== undefined) {
    errors.push(...validateLabelSelector(webhook.namespaceSelector, `${at}.namespaceSelector`));
  }
  if (webhook.objectSelector !== undefined) {
    errors.push(...validateLabelSelector(webhook.objectSelector, `${at}.objectSelector`));
  }
  errors.push(...validateClient(webhook.clientConfig ?? {}, `${at}.clientConfig`));
  errors.push(...validateMatchConditions(webhook.matchConditions, `${at}.matchConditions`));
  errors.push(
    ...validateReviewVersions(webhook.admissionReviewVersions, `${at}.admissionReviewVersions`, mayBeForeign),
  );
  return errors;
}

function validateFullName(name: string | undefined, path: string): FieldError[] {
  if (!isSet(name)) return [fieldError.required(path)];
  const wrong = dns1123SubdomainErrors(name);
  if (wrong.length > 0) return [fieldError.invalid(path, name, wrong.join(','))];
  return name.split('.').length < 3
    ? [fieldError.invalid(path, name, 'should be a domain with at least three segments separated by dots')]
    : [];
}

function validateReviewVersions(
  versions: readonly string[] | undefined,
  path: string,
  mayBeForeign: boolean,
): FieldError[] {
  const given = versions ?? [];
  const known = REVIEW_VERSIONS.join(', ');
  if (given.length === 0) return [fieldError.required(path, `must specify one of ${known}`)];
  const errors: FieldError[] = [];
  given.forEach((version, index) => {
    const at = `${path}[${index}]`;
    if (given.indexOf(version) !== index) errors.push(fieldError.invalid(at, version, 'duplicate version'));
    else errors.push(...validateNameRule(version, dns1035LabelErrors, at));
  });
  if (!mayBeForeign && !given.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(fieldError.invalid(path, given, `must include at least one of ${known}`));
  }
  return errors;
}

function validateClient(client: WebhookClientConfig, path: string): FieldError[] {
  const { url, service } = client;
  if ((url === undefined) === (service === undefined)) {
    return [fieldError.required(path, 'exactly one of url or service is required')];
  }
  if (url !== undefined) return webhookUrlErrors(url, `${path}.url`);
  return service === undefined ? [] : webhookServiceErrors(service, `${path}.service`);
}
