/** How versions become one another, and whom to ask. Source: apiextensions/validation (ValidateCustomResourceConversion), util/webhook. */
import type {
  CustomResourceConversion,
  WebhookClientConfig,
  WebhookConversion,
} from 'kubernetes-types/apiextensions/v1';
import { dns1035LabelErrors } from '../../../base/names.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';

const AT = 'spec.conversion';
/** The versions of ConversionReview that this server speaks. */
export const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

export function validateConversion(conversion: CustomResourceConversion | undefined): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  if (!isSet(strategy)) return [fieldError.required(`${AT}.strategy`)];
  if (strategy === 'None') {
    return webhook === undefined
      ? []
      : [fieldError.forbidden(`${AT}.webhook`, 'should not be set when strategy is not set to Webhook')];
  }
  if (strategy !== 'Webhook') return [fieldError.notSupported(`${AT}.strategy`, strategy, ['None', 'Webhook'])];
  return webhookErrors(webhook);
}

function webhookErrors(webhook: WebhookConversion | undefined): FieldError[] {
  const at = `${AT}.webhook`;
  if (webhook?.clientConfig === undefined) {
    return [fieldError.required(`${at}.clientConfig`, 'required when strategy is set to Webhook')];
  }
  const found = clientErrors(webhook.clientConfig, `${at}.clientConfig`);
  const versions = webhook.conversionReviewVersions ?? [];
  if (versions.length === 0) found.push(fieldError.required(`${at}.conversionReviewVersions`));
  else if (!versions.some((each) => REVIEW_VERSIONS.includes(each))) {
    found.push(
      fieldError.invalid(
        `${at}.conversionReviewVersions`,
        versions,
        `must include at least one of ${REVIEW_VERSIONS.join(', ')}`,
      ),
    );
  }
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    if (seen.has(version))
      found.push(fieldError.invalid(`${at}.conversionReviewVersions[${index}]`, version, 'duplicate version'));
    seen.add(version);
    for (const message of dns1035LabelErrors(version))
      found.push(fieldError.invalid(`${at}.conversionReviewVersions[${index}]`, version, message));
  }
  return found;
}

function clientErrors(client: WebhookClientConfig, at: string): FieldError[] {
  const { url, service } = client;
  if ((url === undefined) === (service === undefined))
    return [fieldError.required(at, 'exactly one of url or service is required')];
  const found: FieldError[] = [];
  if (url !== undefined) found.push(...urlErrors(url, `${at}.url`));
  if (service === undefined) return found;
  if (!isSet(service.name)) found.push(fieldError.required(`${at}.service.name`, 'service name is required'));
  if (!isSet(service.namespace))
    found.push(fieldError.required(`${at}.service.namespace`, 'service namespace is required'));
  const { port, path } = service;
  if (port !== undefined && (port < 1 || port > 65535))
    found.push(
      fieldError.invalid(`${at}.service.port`, port, 'port is not valid: must be between 1 and 65535, inclusive'),
    );
  if (path !== undefined && path !== '' && (!path.startsWith('/') || path.includes('//') || /[?#\s]/.test(path))) {
    found.push(fieldError.invalid(`${at}.service.path`, path, 'must be an absolute path without empty segments'));
  }
  return found;
}

function urlErrors(text: string, at: string): FieldError[] {
  const invalid = (what: string): FieldError[] => [
    fieldError.invalid(at, text, `${what}; desired format: https://host[/path]`),
  ];
  if (!URL.canParse(text)) return invalid('url must be a valid URL');
  const url = new URL(text);
  if (url.protocol !== 'https:') return invalid("'https' is the only allowed URL scheme");
  if (url.hostname === '') return invalid('host must be specified');
  if (url.username !== '' || url.password !== '') return invalid('user information is not permitted in the URL');
  if (url.hash !== '') return invalid('fragments are not permitted in the URL');
  if (url.search !== '') return invalid('query parameters are not permitted in the URL');
  return [];
}
