/**
 * Protobuf form of CustomResourceDefinition. Expected bytes: `Marshal` of
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 v0.36.3 for the document below.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { encodeMessage, envelope } from '../../../src/apiserver/http/protobuf/encode.ts';

const TYPE = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition';
const DOCUMENT = {
  metadata: { name: 'a.b.c' },
  spec: {
    group: 'b.c',
    names: { plural: 'a', singular: 'a', kind: 'A', listKind: 'AList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: false,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            'x-kubernetes-preserve-unknown-fields': true,
            properties: {
              list: { type: 'array', items: { type: 'string', enum: ['x', 1, null] }, default: ['x'] },
              map: { type: 'object', additionalProperties: { type: 'number', maximum: 1.5, minimum: 0 } },
              none: { type: 'object', additionalProperties: false },
            },
            required: ['list'],
            'x-kubernetes-validations': [{ rule: 'true', message: 'm' }],
          },
        },
      },
    ],
    conversion: {
      strategy: 'Webhook',
      webhook: {
        clientConfig: { service: { namespace: 'n', name: 's', port: 443 }, caBundle: 'YQ==' },
        conversionReviewVersions: ['v1'],
      },
    },
  },
  status: { acceptedNames: { plural: '', kind: '' }, storedVersions: ['v1'] },
};
const UPSTREAM = [
  '0a150a05612e622e6312001a0022002a0032003800420012ab030a03622e631a100a01611201612201412a05414c697374220a4e',
  '616d657370616365643ae2020a0276311001180022d1020ace020a00120022002a066f626a65637432003a00500060007a009001',
  '00ba01046c697374ea016e0a046c69737412660a00120022002a05617272617932003a0042070a055b2278225d500060007a0090',
  '0100c201370a350a00120022002a06737472696e6732003a00500060007a00900100a201050a03227822a201030a0131a20100a8',
  '0200b80200c00200a80200b80200c00200ea01680a036d617012610a00120022002a066f626a65637432003a00500060007a0090',
  '0100f2013a080112360a00120022002a066e756d62657232003a0049000000000000f83f500059000000000000000060007a0090',
  '0100a80200b80200c00200a80200b80200c00200ea01310a046e6f6e6512290a00120022002a066f626a65637432003a00500060',
  '007a00900100f201020800a80200b80200c00200a80200b00201b80200c00200e2020d0a047472756512016d1a002a002a020a00',
  '38004a1f0a07576562686f6f6b1214120e0a090a016e12017320bb031201611a02763150001a1012080a00120022002a001a0276',
  '312000',
].join('');

const decoded = (message: Uint8Array): unknown => {
  const { apiVersion, kind, ...rest } = decodeProtobuf(
    envelope('apiextensions.k8s.io/v1', 'CustomResourceDefinition', message),
  );
  assert.deepEqual([apiVersion, kind], ['apiextensions.k8s.io/v1', 'CustomResourceDefinition']);
  return rest;
};

test('decodes upstream’s protobuf encoding of a CustomResourceDefinition with a schema', () => {
  assert.deepEqual(decoded(Buffer.from(UPSTREAM, 'hex')), DOCUMENT);
});

test('encodes and decodes a CustomResourceDefinition with a schema', () => {
  assert.deepEqual(decoded(encodeMessage(TYPE, DOCUMENT)), DOCUMENT);
});

test('encodes and decodes nested schemas in items, dependencies and additionalItems', () => {
  const schema = {
    type: 'object',
    items: [{ type: 'string' }, { type: 'integer' }],
    dependencies: { a: ['b'], c: { type: 'object' } },
    additionalItems: true,
  };
  const document = { spec: { versions: [{ name: 'v1', schema: { openAPIV3Schema: schema } }] } };
  assert.deepEqual(decoded(encodeMessage(TYPE, document)), document);
});

test('rejects a truncated double as a bad request', () => {
  // A truncated value of spec.versions[0].schema.openAPIV3Schema.maximum.
  const message = Buffer.from('12083a0622040a024900', 'hex');
  assert.throws(() => decoded(message), /not valid protobuf: message is cut short/);
});
