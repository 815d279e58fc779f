import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWrite, requestLimit, writeDeadline } from '../../../src/apiserver/http/deadline.ts';
import { decodeBody, decodeJson, duplicatesOf } from '../../../src/apiserver/http/decode.ts';
import { checkDepth, duplicateFields, hasDuplicates, strictErrors } from '../../../src/apiserver/http/json-scan.ts';
import { negotiate } from '../../../src/apiserver/http/negotiate.ts';
import { parseRequestInfo } from '../../../src/apiserver/http/request-info.ts';

const pick = (method: string, url: string) => {
  const info = parseRequestInfo(method, url);
  return info.resource
    ? [info.verb, info.group, info.version, info.namespace, info.plural, info.name, info.subresource].join('|')
    : `${info.verb} ${info.path}`;
};

describe('request time limit', () => {
  const limit = (query: string) => requestLimit(parseRequestInfo('GET', `/api/v1/pods${query}`), 60_000);

  it("request time limit is the client's timeout if the timeout is shorter", () => {
    assert.deepEqual(['', '?timeout=', '?timeout=0s', '?timeout=-1s', '?timeout=2m'].map(limit), Array(5).fill(60_000));
    assert.deepEqual(['?timeout=1500ms', '?timeout=1m', '?limit=1&timeout=7s'].map(limit), [1500, 60_000, 7000]);
    for (const bad of ['1', 'soon', '1 s', '1'.repeat(16_000)])
      assert.throws(() => limit(`?timeout=${bad}`), { httpCode: 400 });
  });

  it('request time limit is 34 seconds for a write of a single object', () => {
    assert.deepEqual([writeDeadline(1000, 61_000), writeDeadline(1000, 6000)], [35_000, 6000]);
    const at = (method: string, path: string) => isWrite(parseRequestInfo(method, path));
    const one = '/api/v1/namespaces/a/pods/b';
    assert.deepEqual(
      ['PUT', 'PATCH', 'DELETE', 'GET'].map((method) => at(method, one)),
      [true, true, true, false],
    );
    const all = '/api/v1/namespaces/a/pods';
    assert.deepEqual(
      [at('POST', all), at('DELETE', all), at('GET', all), at('POST', '/version')],
      [true, false, false, false],
    );
  });
});

describe('request info', () => {
  // Cases of upstream's request_info_test.go.
  const cases: readonly (readonly [string, string, string])[] = [
    ['GET', '/api/v1/namespaces', 'list||v1||namespaces||'],
    ['GET', '/api/v1/namespaces/other', 'get||v1|other|namespaces|other|'],
    ['PUT', '/api/v1/namespaces/other/finalize', 'update||v1|other|namespaces|other|finalize'],
    ['GET', '/api/v1/namespaces/other/pods', 'list||v1|other|pods||'],
    ['GET', '/api/v1/namespaces/other/pods/foo', 'get||v1|other|pods|foo|'],
    ['HEAD', '/api/v1/namespaces/other/pods/foo', 'get||v1|other|pods|foo|'],
    ['GET', '/api/v1/pods', 'list||v1||pods||'],
    ['GET', '/api/v1/pods?watch=true', 'watch||v1||pods||'],
    ['GET', '/api/v1/pods?watch=false', 'list||v1||pods||'],
    ['GET', '/api/v1/pods?watch=False', 'list||v1||pods||'],
    ['GET', '/api/v1/watch/namespaces/other/pods', 'watch||v1|other|pods||'],
    ['DELETE', '/api/v1/namespaces/other/pods', 'deletecollection||v1|other|pods||'],
    ['DELETE', '/api/v1/namespaces/other/pods/foo', 'delete||v1|other|pods|foo|'],
    ['GET', '/api/v1/namespaces/other/pods/foo/log', 'get||v1|other|pods|foo|log'],
    ['GET', '/api/v1/nodes/n:10250/proxy/a%2fb/../c', 'get||v1||nodes|n:10250|proxy'],
    ['POST', '/apis/apps/v1/namespaces/other/deployments', 'create|apps|v1|other|deployments||'],
    [
      'PATCH',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
      'patch|rbac.authorization.k8s.io|v1||clusterroles|system:node|',
    ],
    ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Dfoo', 'list||v1||pods|foo|'],
    ['GET', '/api/v1/namespaces/mine/namespaces/other', 'get||v1|mine|namespaces|other|'],
    ['PUT', '/api/v1/namespaces/mine/namespaces/mine/finalize', 'update||v1|mine|namespaces|mine|finalize'],
    ['GET', '/apis/g/v1/namespaces/other', 'get|g|v1||namespaces|other|'],
    ['PUT', '/apis/g/v1/namespaces/other/status', 'update|g|v1||namespaces|other|status'],
    ['GET', '/api', 'get /api'],
    ['GET', '/apis/apps/v1', 'get /apis/apps/v1'],
    ['GET', '/api/v1/', 'get /api/v1/'],
    ['POST', '/healthz', 'post /healthz'],
  ];
  for (const [method, url, expected] of cases) {
    it(`parses ${method} ${url}`, () => assert.equal(pick(method, url), expected));
  }

  for (const url of [
    '/api/v1/namespaces/a/pods/..',
    '/api/v1/namespaces/../secrets',
    '/api/v1/namespaces/a%2fb/pods',
    '/api/v1/namespaces/a/pods/x%00y',
    '/api/v1/namespaces/a/pods/%2e%2e',
    '/api/v1/namespaces/a/pods/%zz',
    '/api/v1/namespaces//pods',
    '/api/v1/namespaces/a/pods//log',
    '/api//v1/pods',
    '/apis/g/v1/namespaces/a/pods/x/proxy/..',
    '/healthz/%2e%2e/metrics',
    'x',
  ]) {
    it(`rejects ${url}`, () => assert.throws(() => parseRequestInfo('GET', url), { httpCode: 400 }));
  }

  it('returns the path below a subresource, and rejects invalid segments in the path', () => {
    const info = parseRequestInfo('GET', '/apis/g/v1/namespaces/a/pods/x/log/y/z');
    assert.equal(info.resource && info.tail, '/y/z');
    for (const below of ['..', 'a%2fb', '%00']) {
      assert.throws(() => parseRequestInfo('GET', `/apis/g/v1/namespaces/a/pods/x/log/${below}`), { httpCode: 400 });
    }
  });

  it('request info is cached for a repeated path and method', () => {
    const path = '/api/v1/namespaces/a/pods/again';
    const first = parseRequestInfo('GET', path);
    assert.equal(parseRequestInfo('GET', path), first);
    assert.equal(parseRequestInfo('DELETE', path).verb, 'delete');
    assert.notEqual(parseRequestInfo('GET', `${path}?watch=1`), parseRequestInfo('GET', `${path}?watch=1`));
    // Other paths evict the first path from the cache, whose size is limited.
    for (let other = 0; other < 5000; other++) parseRequestInfo('GET', `${path}-${other}`);
    assert.notEqual(parseRequestInfo('GET', path), first);
    assert.deepEqual(parseRequestInfo('GET', path), first);
  });
});

describe('scan of JSON', () => {
  it('the JSON scan finds duplicate fields with their paths', () => {
    const text = '{"a":{"b":1,"c":[{"x":1},{"x":1,"y":{"z":0},"x":2}],"b":2},"k\\u0065y":1,"key":"a\\"b:{,"}';
    assert.deepEqual(duplicateFields(Buffer.from(text)), ['a.c[1].x', 'a.b', 'key']);
  });

  it('reports unknown and duplicate fields in document order, except inside unknown fields', () => {
    const text = '{"u":{"x":1,"x":2},"a":1,"b":{"v":1,"c":2,"c":3,"v":4},"a":2,"u":5,"w":[{"k":1}]}';
    assert.deepEqual(strictErrors(Buffer.from(text), ['b.v', 'u', 'w[0].k', 'elsewhere']), [
      'unknown field "u"',
      'unknown field "b.v"',
      'duplicate field "b.c"',
      'duplicate field "a"',
      'unknown field "w[0].k"',
      'unknown field "elsewhere"',
    ]);
  });

  it('the JSON scan ignores string values that look like fields', () => {
    assert.deepEqual(duplicateFields(Buffer.from('{"a":"a","b":["a","a",{"a":"a"}],"c":{"a":"b"}}')), []);
  });

  it('a count of fields detects duplicates exactly like the JSON scan in random documents', () => {
    let state = 7;
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const pieces = [
      'a',
      '\\"',
      '\\\\',
      ':',
      '{',
      ',',
      'é',
      '\\u003a',
      'x'.repeat(40),
      '\\"'.repeat(20),
      '\\\\'.repeat(17),
    ];
    const text = (): string => Array.from({ length: random(4) }, () => pieces[random(pieces.length)]).join('');
    const value = (depth: number): string => {
      const kind = depth > 3 ? 0 : random(4);
      if (kind === 0) return `"${text()}"`;
      if (kind === 1) return ['1', 'null', 'true', '-2.5e3'][random(4)] ?? '1';
      const size = random(4);
      if (kind === 2) return `[ ${Array.from({ length: size }, () => value(depth + 1)).join(' ,')}]`;
      const names = ['a', 'b', '__proto__', text()];
      return `{${Array.from({ length: size }, () => `"${names[random(4)]}" : ${value(depth + 1)}`).join(', ')} }`;
    };
    let found = 0;
    for (let round = 0; round < 3000; round++) {
      const body = Buffer.from(value(0));
      const expected = duplicateFields(body).length > 0;
      if (expected) found += 1;
      assert.equal(hasDuplicates(body, decodeJson(body)), expected, body.toString());
    }
    assert.ok(found > 100, `${found} with duplicates`);
  });

  it('the JSON scan rejects too deep nesting before recursive parsing', () => {
    const deep = Buffer.from('['.repeat(100_000) + ']'.repeat(100_000));
    assert.throws(() => decodeJson(deep), { httpCode: 400 });
    assert.throws(() => checkDepth(Buffer.from('{"a":'.repeat(100_000))), { httpCode: 400 });
    checkDepth(Buffer.from(`"${'['.repeat(100_000)}"`));
  });
});

describe('request bodies', () => {
  it('request bodies keep __proto__ as a field like any other', () => {
    const document = decodeBody(Buffer.from('{"data":{"__proto__":"x","constructor":"y"}}'), 'json');
    const data = document['data'] as Record<string, unknown>;
    assert.ok(Object.hasOwn(data, '__proto__'));
    assert.equal(Object.getPrototypeOf(data), Object.prototype);
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  it('parses request bodies in YAML', () => {
    const document = decodeBody(Buffer.from('a: 1\nb: [x, "y"]\nc: &k {d: true}\ne: *k\n'), 'yaml');
    assert.deepEqual(document, { a: 1, b: ['x', 'y'], c: { d: true }, e: { d: true } });
  });

  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'.split('').map((letter, index) => {
      const before = 'abcdefgh'[index];
      return `${letter}: &${letter} [${Array(9).fill(`*${before}`).join(',')}]`;
    }),
  ].join('\n');
  for (const [name, text] of [
    ['YAML with an alias bomb', bomb],
    ['YAML with a custom tag', 'a: !!js/function "x"'],
    ['YAML with a local tag', 'a: !env HOME'],
    ['malformed YAML', 'a: [1'],
    ['YAML with deeply nested flow sequences', '['.repeat(5000)],
  ] as const) {
    it(`rejects ${name}`, () => {
      const began = performance.now();
      assert.throws(() => decodeBody(Buffer.from(text), 'yaml'), { httpCode: 400 });
      assert.ok(performance.now() - began < 2000);
    });
  }

  it('parses YAML up to the body limit, rejects too many tokens, and rejects deep nesting before parsing', () => {
    const line = '    a line of a script, as config maps have them, some sixty letters\n';
    const block = `data:\n  script: |\n${line.repeat(40_000)}`;
    const document = decodeBody(Buffer.from(block), 'yaml') as { data: { script: string } };
    assert.equal(document.data.script.length, 40_000 * (line.length - 4));
    for (const open of ['[', '{', '[ {', '- ['])
      assert.throws(() => decodeBody(Buffer.from(`a: ${open.repeat(700_000)}`), 'yaml'), { httpCode: 400 });
    assert.throws(() => decodeBody(Buffer.from(`a: [${'[], '.repeat(700_000)}`), 'yaml'), { httpCode: 413 });
  });

  it('parses a YAML map of thousands of keys in linear time', () => {
    const map = (keys: number): Buffer =>
      Buffer.from(Array.from({ length: keys }, (_, index) => `k${index}: v\n`).join(''));
    const timed = (keys: number): number => {
      const began = process.threadCpuUsage();
      assert.equal(Object.keys(decodeBody(map(keys), 'yaml')).length, keys);
      return process.threadCpuUsage(began).user;
    };
    timed(1000);
    const few = timed(1000);
    assert.ok(timed(6000) < few * 6 * 4, 'six times as many keys take far more than six times as long');
    assert.throws(() => decodeBody(map(50_000), 'yaml'), { httpCode: 413 });
  });

  it('request bodies may not contain infinite numbers, but strings such as "Infinity"', () => {
    for (const text of ['{"a":1e400}', '{"a":[{"b":-1E+999}]}', `{"a":${'9'.repeat(400)}}`])
      assert.throws(() => decodeJson(Buffer.from(text)), { httpCode: 400, message: /cannot unmarshal number/ });
    const uid = { uid: '4c1e1234-0000-4000-8000-000000000000', large: 1e300 };
    assert.deepEqual(decodeJson(Buffer.from(JSON.stringify(uid))), uid);
    // Text that almost matches the pattern everywhere is processed in linear time. A second is a hundred times the
    // usual time.
    for (const piece of ['1.', '1e', '1e11', `${'1'.repeat(308)},`, '1234567890123456']) {
      const text = JSON.stringify({ a: piece.repeat(Math.floor(2_000_000 / piece.length)) });
      const began = process.threadCpuUsage();
      decodeJson(Buffer.from(text));
      assert.ok(process.threadCpuUsage(began).user < 1_000_000, piece);
    }
  });

  it('uses the last of duplicate keys in a YAML map, and reports their lines', () => {
    for (const [text, value, line] of [
      ['a: 1\n"a": 2\n', { a: 2 }, 'line 2: key "a" already set in map'],
      ['b: {1: x,\n "1": z}\n', { b: { 1: 'z' } }, 'line 2: key "1" already set in map'],
    ] as const) {
      const body = Buffer.from(text);
      const document = decodeBody(body, 'yaml');
      assert.deepEqual(document, value);
      assert.deepEqual(duplicatesOf(body, 'yaml', document), [line]);
    }
  });

  it('parses YAML as upstream: the first document, YAML 1.1 numbers and booleans, dates and times as strings', () => {
    const text = 'a: yes\nb: off\nc: 0x10\nd: 010\ne: 1e1\nf: 2020-01-02\ng: 12:30:45\nh: "no"\n---\ni: 1\n';
    assert.deepEqual(decodeBody(Buffer.from(text), 'yaml'), {
      a: true,
      b: false,
      c: 16,
      d: 8,
      e: 10,
      f: '2020-01-02',
      g: '12:30:45',
      h: 'no',
    });
  });

  it('rejects bytes that are not UTF-8 and documents that are not objects', () => {
    assert.throws(() => decodeBody(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'json'), {
      httpCode: 400,
    });
    assert.throws(() => decodeBody(Buffer.from('[]'), 'json'), { httpCode: 400 });
    assert.throws(() => decodeBody(Buffer.from('{"a":'), 'json'), { httpCode: 400 });
  });
});

describe('content negotiation', () => {
  it('content negotiation selects the first supported media type of the client', () => {
    const table =
      'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';
    assert.deepEqual(negotiate(table, { protobuf: true }), { format: 'json', as: 'Table', version: 'v1' });
    const both = 'application/vnd.kubernetes.protobuf,application/json';
    assert.deepEqual(negotiate(both, { protobuf: true }), { format: 'protobuf', as: 'object', version: '' });
    assert.deepEqual(negotiate(both, { protobuf: false }), { format: 'json', as: 'object', version: '' });
    assert.equal(
      negotiate('application/vnd.kubernetes.protobuf;q=0.1,application/json', { protobuf: true }).format,
      'json',
    );
    const metadata = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    assert.deepEqual(negotiate(`application/vnd.kubernetes.protobuf;${metadata}`, { protobuf: false }), {
      format: 'protobuf',
      as: 'PartialObjectMetadata',
      version: 'v1',
    });
    const asTable = 'application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1';
    assert.equal(negotiate(`${asTable},application/json`, { protobuf: true }).as, 'object');
    assert.deepEqual(negotiate('application/yaml;q=0.5, application/json;q=0.4', { protobuf: true }), {
      format: 'yaml',
      as: 'object',
      version: '',
    });
    assert.equal(negotiate('application/json;as=Table;v=v9;g=meta.k8s.io,*/*', { protobuf: true }).as, 'object');
    assert.equal(negotiate(undefined, { protobuf: true }).format, 'json');
  });

  it('content negotiation returns 406 if no media type is supported', () => {
    assert.throws(() => negotiate('application/vnd.kubernetes.protobuf', { protobuf: false }), { httpCode: 406 });
    assert.throws(() => negotiate('text/html', { protobuf: true }), { httpCode: 406 });
  });
});
