import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiServerSkew, kubeletSkew } from '../../../src/base/versions/version-skew.ts';

test('allows a kubelet up to three minor versions older than the API server, and no newer kubelet', () => {
  for (const fine of ['v1.36.0+hyperedge1', 'v1.36.9', 'v1.35.2', 'v1.33.0', 'unknown'])
    assert.equal(kubeletSkew(fine, 'v1.36.0+hyperedge1'), undefined, fine);
  assert.match(kubeletSkew('v1.37.0', 'v1.36.4') ?? '', /kubelet v1\.37\.0 is newer than API server v1\.36\.4; /);
  assert.match(kubeletSkew('v1.32.9', 'v1.36.0') ?? '', /more than 3 minor versions older/);
  assert.match(kubeletSkew('v2.0.0', 'v1.36.0') ?? '', /newer/);
});

test('allows API servers to differ by one minor version', () => {
  assert.equal(apiServerSkew('v1.36.0', 'v1.35.7'), undefined);
  assert.equal(apiServerSkew('v1.36.0', 'v1.37.0'), undefined);
  assert.match(apiServerSkew('v1.36.0', 'v1.38.0') ?? '', /differ by more than 1 minor version/);
});
