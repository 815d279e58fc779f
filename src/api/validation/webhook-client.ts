/** Validation of a webhook's client configuration. Source: k8s.io/apiserver/pkg/util/webhook/validation.go. */
import { dns1123SubdomainErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';

interface WebhookService {
  readonly name?: string;
  readonly namespace?: string;
  readonly path?: string;
  readonly port?: number;
}

const HTTPS_PORT = 443;
const FORM = '; desired format: https://host[/path]';
/** Splits a URL as Go's net/url does, which accepts almost any text. */
const PARTS =
  /^(?:(?<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/(?:(?<user>[^/?#]*)@)?(?<host>[^/?#]*))?[^?#]*(?:\?(?<query>[^#]*))?(?:#(?<fragment>.*))?$/s;

export function webhookUrlErrors(text: string, path: string): FieldError[] {
  const parts = PARTS.exec(text)?.groups ?? {};
  const { scheme = '', user, host = '', query = '', fragment = '' } = parts;
  const unreadable = parseError(text, host);
  if (unreadable !== undefined)
    return [fieldError.required(path, `url must be a valid URL: parse ${JSON.stringify(text)}: ${unreadable}${FORM}`)];
  const found: FieldError[] = [];
  const wrong = (value: string, what: string): void => void found.push(fieldError.invalid(path, value, what));
  if (scheme.toLowerCase() !== 'https') wrong(scheme.toLowerCase(), `'https' is the only allowed URL scheme${FORM}`);
  if (host === '') wrong(host, `host must be specified${FORM}`);
  // The user information may contain a password, so the error does not repeat it.
  if (user !== undefined) wrong('<redacted>', 'user information is not permitted in the URL');
  if (fragment !== '') wrong(fragment, 'fragments are not permitted in the URL');
  if (query !== '') wrong(query, 'query parameters are not permitted in the URL');
  return found;
}

function parseError(text: string, host: string): string | undefined {
  if (/\p{Cc}/u.test(text)) return 'net/url: invalid control character in URL';
  if (text.startsWith(':')) return 'missing protocol scheme';
  const odd = /[\s<>"\\^`{|}]/.exec(host);
  if (odd !== null) return `invalid character ${JSON.stringify(odd[0])} in host name`;
  const port = /:([^\]]*)$/.exec(host)?.[1];
  return port !== undefined && !/^\d*$/.test(port)
    ? `invalid port ${JSON.stringify(`:${port}`)} after host`
    : undefined;
}

export function webhookServiceErrors(service: WebhookService, path: string): FieldError[] {
  const found: FieldError[] = [];
  if (!isSet(service.name)) found.push(fieldError.required(`${path}.name`));
  if (!isSet(service.namespace)) found.push(fieldError.required(`${path}.namespace`));
  const port = service.port ?? HTTPS_PORT;
  if (port < 1 || port > 65535)
    found.push(fieldError.invalid(`${path}.port`, port, 'port is not valid: must be between 1 and 65535, inclusive'));
  if (service.path !== undefined) found.push(...pathErrors(service.path, `${path}.path`));
  return found;
}

function pathErrors(path: string, at: string): FieldError[] {
  if (path === '' || path === '/') return [];
  const found: FieldError[] = [];
  const wrong = (what: string): void => void found.push(fieldError.invalid(at, path, what));
  if (path === '//') {
    wrong('segment[0] may not be empty');
    return found;
  }
  if (!path.startsWith('/')) wrong("must start with a '/'");
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  for (const [index, step] of steps.entries()) {
    if (step === '') wrong(`segment[${index}] may not be empty`);
    else for (const message of dns1123SubdomainErrors(step)) wrong(`segment[${index}]: ${message}`);
  }
  return found;
}
