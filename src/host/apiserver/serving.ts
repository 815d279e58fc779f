/** Converts the serving flags to the API server's listener, CORS and HSTS headers, and shutdown. */

import type { ApiValues } from '../../apiserver/config/index.ts';
import type { ApiServerConfig } from '../../apiserver/index.ts';
import { messageOf } from '../../base/errors.ts';
import { compileRegexp } from '../../base/regexp/index.ts';
import { type NamedFiles, namedCertificates, parseNamedFiles } from './named-certificates.ts';

/** Key exchange groups by their TLS identifier, which Go's flag uses. Source: IANA "TLS Supported Groups". */
const CURVES: ReadonlyMap<string, string> = new Map([
  ['23', 'prime256v1'],
  ['24', 'secp384r1'],
  ['25', 'secp521r1'],
  ['29', 'X25519'],
  ['4588', 'X25519MLKEM768'],
]);
const MAX_GOAWAY_CHANCE = 0.02;
const MAX_STREAMS = 0x7fff_ffff;

type Serving = Pick<
  ApiServerConfig,
  'browsers' | 'goawayChance' | 'maxStreams' | 'sharesPort' | 'shutdownDelaySeconds' | 'withoutHttp2'
>;

/** Serving settings. Throws ApiUsageProblems. */
export function servingLimits(values: ApiValues): Serving {
  const maxStreams = values.number('http2-max-streams-per-connection');
  if (maxStreams < 0 || maxStreams > MAX_STREAMS)
    values.refuse('http2-max-streams-per-connection', `must be 0 to ${MAX_STREAMS}`);
  const goawayChance = Number(values.text('goaway-chance'));
  if (goawayChance > MAX_GOAWAY_CHANCE) values.refuse('goaway-chance', `must be 0 to ${MAX_GOAWAY_CHANCE}`);
  const delayMs = values.milliseconds('shutdown-delay-duration');
  if (delayMs < 0) values.refuse('shutdown-delay-duration', 'must not be negative');
  return {
    ...browsers(values),
    ...(goawayChance > 0 ? { goawayChance } : {}),
    ...(maxStreams > 0 ? { maxStreams } : {}),
    ...(values.boolean('disable-http2-serving') ? { withoutHttp2: true } : {}),
    ...(values.boolean('permit-port-sharing') ? { sharesPort: true } : {}),
    ...(delayMs > 0 ? { shutdownDelaySeconds: delayMs / 1000 } : {}),
  };
}

function browsers(values: ApiValues): Pick<ApiServerConfig, 'browsers'> {
  const allowedOrigins = values.list('cors-allowed-origins');
  for (const pattern of allowedOrigins) {
    // An unanchored pattern allows every origin that contains the name (CVE-2022-1996).
    if (!/\^|\/\//.test(pattern) || !/[$:]/.test(pattern))
      values.refuse(
        'cors-allowed-origins',
        `"${pattern}" does not anchor the start and the end of the host; write the pattern as //example\\.com(:|$)`,
      );
    try {
      compileRegexp(pattern);
    } catch (error) {
      values.refuse('cors-allowed-origins', `"${pattern}" is not a valid pattern: ${messageOf(error)}`);
    }
  }
  const directives = values.list('strict-transport-security-directives');
  for (const directive of directives) {
    if (!/^(?:includeSubDomains|preload|max-age=\d+)$/.test(directive))
      values.refuse(
        'strict-transport-security-directives',
        `"${directive}" is not one of max-age=SECONDS, includeSubDomains and preload`,
      );
  }
  if (allowedOrigins.length === 0 && directives.length === 0) return {};
  return {
    browsers: {
      ...(allowedOrigins.length === 0 ? {} : { allowedOrigins }),
      ...(directives.length === 0 ? {} : { transportSecurity: directives.join('; ') }),
    },
  };
}

/** Key exchange groups in OpenSSL's format; undefined if OpenSSL's default applies. Throws ApiUsageProblems. */
export function curvesOf(values: ApiValues): string | undefined {
  const numbers = values.list('tls-curve-preferences');
  if (numbers.length === 0) return undefined;
  if (new Set(numbers).size < numbers.length)
    values.refuse('tls-curve-preferences', 'a group is given twice; remove one');
  const names = numbers.map(
    (number) =>
      CURVES.get(number) ??
      values.refuse(
        'tls-curve-preferences',
        `"${number}" is not a supported group; give ${[...CURVES.keys()].join(', ')}`,
      ),
  );
  return names.join(':');
}

/** The files of `--tls-sni-cert-key`. Throws ApiUsageProblems. */
export function namedFiles(values: ApiValues): NamedFiles[] {
  return values.list('tls-sni-cert-key').map((text) => {
    const parsed = parseNamedFiles(text);
    if (parsed === undefined)
      return values.refuse('tls-sni-cert-key', `"${text}" is not CERT,KEY or CERT,KEY:NAME,NAME`);
    return {
      ...parsed,
      certificate: values.located(parsed.certificate),
      key: values.located(parsed.key),
    };
  });
}

/** Certificates by SNI name. Throws CodedErrors and ApiUsageProblems that name the flag or the file. */
export async function namedServing(
  values: ApiValues,
  { text, secret }: { text(path: string): Promise<string>; secret(path: string): Promise<string> },
): Promise<Pick<ApiServerConfig, 'namedServing'>> {
  const files = namedFiles(values);
  if (files.length === 0) return {};
  const texts: { certificate: string; key: string }[] = [];
  for (const { certificate, key } of files)
    texts.push({ certificate: await text(certificate), key: await secret(key) });
  try {
    return { namedServing: namedCertificates(files, texts) };
  } catch (error) {
    return values.refuse('tls-sni-cert-key', messageOf(error));
  }
}
