/** Query parameters and headers with valid names and unusual values. */
import type { Choices } from '../../apiserver/core/patch/choices.ts';
import { KEYS, text } from './values.ts';

const ACCEPTS = [
  'application/json',
  'application/json',
  '*/*',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'application/cbor',
  'text/html',
  'text/plain;q=0.5,application/yaml;q=0.9,application/json;q=0.1',
  'application/json;q=0',
  '*/*;q=nonsense',
  'application/json;as=__proto__;v=constructor;g=x',
  ',,,;;;=',
  '"',
  `${'a/b,'.repeat(900)}*/*`,
  'application/json;stream=watch',
  'application/json;as=Table;v=v2;g=meta.k8s.io',
] as const;

/** A query string, or ''. */
export function query(choices: Choices): string {
  if (choices.chance(0.6)) return '';
  const token = (start: unknown, rv: unknown) =>
    Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start })).toString('base64url');
  const parameter = (): string => {
    switch (choices.below(16)) {
      case 0:
        return `limit=${choices.one(['1', '2', '0', '-1', '1e3', '9999999999999999', 'x', ''])}`;
      case 1:
        return `continue=${choices.one([token('', 5), token('default/x\u0000', 1), token('../../secrets', 3), token({ a: 1 }, 3), token('x', -1), token('x', 1e15), token('~', '7'), 'x', '%00', 'eyJ2Ijoi', token('default/x', choices.below(5000))])}`;
      case 2:
        return `labelSelector=${encodeURIComponent(choices.one(['a=b', 'a', '!a', 'a in (b,c)', 'a notin ()', 'a in (', '=', 'a==b,c!=d', '__proto__', 'constructor=x', `${'a=b,'.repeat(500)}a=b`, 'a=b=c', 'a>1', 'a<x', '(', ',', 'x'.repeat(300), '\u0000']))}`;
      case 3:
        return `fieldSelector=${encodeURIComponent(choices.one(['metadata.name=x', 'metadata.name=', 'metadata.namespace!=a', 'spec.nodeName=', 'status.phase=Running', '__proto__=x', 'metadata.name', '=', 'metadata.name=x\\,y', 'constructor.name=Object', 'metadata.name=x,metadata.name=y', 'type=a', '\\']))}`;
      case 4:
        return `resourceVersion=${choices.one(['0', '1', '5', '-1', 'x', '999999999999', '99999999999999999999', '', '1.5', String(choices.below(20_000))])}`;
      case 5:
        return `resourceVersionMatch=${choices.one(['Exact', 'NotOlderThan', 'x', ''])}`;
      case 6:
        return `watch=${choices.one(['true', '1', 'false', 'x', ''])}`;
      case 7:
        return `timeoutSeconds=${choices.one(['1', '0', '-1', 'x', '99999999999'])}`;
      case 8:
        return choices.one([
          'sendInitialEvents=true',
          'allowWatchBookmarks=true',
          'pretty=true',
          'includeObject=Object',
          'includeObject=None',
          'includeObject=x',
          'force=true',
          'orphanDependents=true',
          'gracePeriodSeconds=0',
          'gracePeriodSeconds=-5',
          'gracePeriodSeconds=x',
          'propagationPolicy=Foreground',
          'propagationPolicy=x',
          'timeout=1s',
          'timeout=x',
        ]);
      case 9:
        return `dryRun=${choices.one(['All', 'All', 'x', ''])}`;
      case 10:
        return `fieldManager=${encodeURIComponent(choices.one(['kubectl', 'a', '', 'x'.repeat(129), 'ä', '\n']))}`;
      case 11:
        return `fieldValidation=${choices.one(['Strict', 'Strict', 'Warn', 'Ignore', 'x'])}`;
      case 12:
        return choices.one([
          'command=sh&command=-c',
          'container=main',
          'tailLines=5',
          'follow=true',
          'sinceTime=x',
          'limitBytes=-1',
          'ports=80',
          'stdin=true&tty=true',
          'insecureSkipTLSVerifyBackend=true',
          'path=/../x',
        ]);
      case 13:
        return `${choices.one(['__proto__', 'constructor', '__proto__[x]', 'a[b]'])}=${choices.one(['1', '', '%00'])}`;
      case 14:
        return choices.one([
          '&&&',
          '=',
          '?',
          '%',
          '%ff=%ff',
          `${'a=b&'.repeat(1000)}`,
          'x'.repeat(9000),
          'a=%E2%80',
          '+=+',
          ';a=b',
        ]);
      default:
        return `${encodeURIComponent(choices.one(KEYS)).slice(0, 100)}=${encodeURIComponent(text(choices).toWellFormed()).slice(0, 500)}`;
    }
  };
  return `?${Array.from({ length: 1 + choices.below(3) }, parameter).join('&')}`;
}

/** Headers in addition to the content type, valid and invalid ones. */
export function headersOf(choices: Choices, type: string | undefined): [string, string][] {
  const headers: [string, string][] = [];
  if (choices.chance(0.4))
    headers.push(['accept', choices.chance(0.7) ? choices.one(ACCEPTS.slice(0, 8)) : choices.one(ACCEPTS)]);
  if (type !== undefined && type !== '')
    headers.push(['content-type', choices.chance(0.05) ? choices.one(ACCEPTS) : type]);
  const more: readonly (readonly [string, string])[] = [
    [
      'impersonate-user',
      choices.one([
        'x',
        'system:admin',
        '',
        'system:anonymous',
        'system:serviceaccount:default:x',
        'ä',
        'x'.repeat(2000),
      ]),
    ],
    choices.one<[string, string]>([
      ['impersonate-group', choices.one(['system:masters', '', 'x'])],
      ['impersonate-uid', 'x'],
      ['impersonate-extra-scopes', choices.one(['a', '%00', ''])],
      ['impersonate-extra-__proto__', 'a'],
      ['impersonate-extra-', 'a'],
    ]),
    [
      'authorization',
      choices.one([
        'Bearer x',
        'Bearer ',
        'Bearer a.b.c',
        'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.',
        'Basic eDp5',
        'Bearer\tx',
        `Bearer ${'x'.repeat(9000)}`,
      ]),
    ],
    ['if-none-match', choices.one(['*', '"x"', 'W/"x"', ',', '"'])],
    ['if-modified-since', choices.one(['x', 'Thu, 01 Jan 1970 00:00:00 GMT'])],
    ['if-match', '*'],
    ['range', choices.one(['bytes=0-1', 'bytes=-', 'x'])],
    ['accept-encoding', choices.one(['gzip', 'gzip;q=0', 'br, gzip;q=0.1', '*', ';;', 'identity'])],
    ['content-encoding', choices.one(['gzip', 'deflate', 'x', 'identity', 'gzip, gzip'])],
    ['x-remote-user', 'system:admin'],
    ['x-remote-group', 'system:masters'],
    ['x-forwarded-for', choices.one(['127.0.0.1', 'x, y', ''])],
    ['user-agent', choices.one(['', 'kubectl/v1.20', 'ä', 'x'.repeat(3000), '/'])],
    ['kubectl-command', 'x'],
    ['te', 'trailers'],
    ['cookie', 'a=b; __proto__=c'],
    ['x-http-method-override', 'DELETE'],
    ['__proto__', 'x'],
    ['constructor', 'x'],
    ['sec-websocket-protocol', 'base64url.bearer.authorization.k8s.io.eA'],
    ['date', 'x'],
    ['audit-id', choices.one(['x', 'x'.repeat(500), '\u00e4'])],
    ['x-big', 'x'.repeat(choices.one([10, 15_000, 60_000]))],
    ['traceparent', '00-0-0-00'],
    ['origin', 'https://evil.example.com'],
  ];
  if (choices.chance(0.15))
    headers.push(...choices.some(more, 1, 4).map(([name, held]): [string, string] => [name, held]));
  if (choices.chance(0.02))
    headers.push(
      ...Array.from({ length: choices.one([50, 500, 1500]) }, (_, at): [string, string] => [`x-${at}`, 'y']),
    );
  return headers;
}
