/**
 * Validation of `spec.conversion`: the strategy and the conversion webhook. Source: apiextensions/validation
 * (ValidateCustomResourceConversion), util/webhook.
 */

import { dns1035LabelErrors } from '../../../../base/names.ts';
import type { CustomResourceConversion, WebhookClientConfig } from '../../../generated/apiextensions/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { webhookServiceErrors, webhookUrlErrors } from '../../../validation/webhook-client.ts';

const AT = 'spec.conversion';
/** Versions of ConversionReview that this server supports. */
export const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

/**
 * Validates the conversion of a definition. `preserves`: the definition keeps unknown fields (preserveUnknownFields),
 * which a conversion webhook could not convert.
 */
export function validateConversion(conversion: CustomResourceConversion | undefined, preserves: boolean): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  const found: FieldError[] = [];
  if (strategy !== 'None' && preserves)
    found.push(
      fieldError.invalid(`${AT}.strategy`, strategy ?? '', 'must be None if spec.preserveUnknownFields is true'),
    );
  if (!isSet(strategy)) found.push(fieldError.required(`${AT}.strategy`));
  else if (strategy !== 'None' && strategy !== 'Webhook')
    found.push(fieldError.notSupported(`${AT}.strategy`, strategy, ['None', 'Webhook']));
  const versions = webhook?.conversionReviewVersions ?? [];
  if (strategy === 'Webhook') return [...found, ...clientErrors(webhook?.clientConfig), ...reviewErrors(versions)];
  const forbid = (field: string): void =>
    void found.push(fieldError.forbidden(`${AT}.${field}`, 'should not be set when strategy is not set to Webhook'));
  if (webhook?.clientConfig !== undefined) forbid('webhookClientConfig');
  if (versions.length > 0) forbid('conversionReviewVersions');
  return found;
}

function reviewErrors(versions: readonly string[]): FieldError[] {
  const at = `${AT}.conversionReviewVersions`;
  if (versions.length === 0) return [fieldError.required(at)];
  const found: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    if (seen.has(version)) found.push(fieldError.invalid(`${at}[${index}]`, version, 'duplicate version'));
    else
      for (const message of dns1035LabelErrors(version))
        found.push(fieldError.invalid(`${at}[${index}]`, version, message));
    seen.add(version);
  }
  if (!versions.some((each) => REVIEW_VERSIONS.includes(each)))
    found.push(fieldError.invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  return found;
}

/** Validates the webhook client. Error paths are those of upstream's internal version of the definition. */
function clientErrors(client: WebhookClientConfig | undefined): FieldError[] {
  const at = `${AT}.webhookClientConfig`;
  if (client === undefined) return [fieldError.required(at, 'required when strategy is set to Webhook')];
  const { url, service } = client;
  if ((url === undefined) === (service === undefined))
    return [fieldError.required(at, 'exactly one of url or service is required')];
  return url === undefined ? webhookServiceErrors(service ?? {}, `${at}.service`) : webhookUrlErrors(url, `${at}.url`);
}
