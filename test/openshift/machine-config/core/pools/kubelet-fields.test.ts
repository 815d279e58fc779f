import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  kubeletArguments,
  kubeletFields,
} from '../../../../../src/openshift/machine-config/core/pools/kubelet-fields.ts';

const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'max-pods': ['42'],
  'pod-max-pids': ['1024'],
  'seccomp-default': ['true'],
  'container-log-max-size': ['10Mi'],
  'container-log-max-files': ['3'],
  'system-reserved': ['cpu=100m', 'memory=200Mi'],
  'enforce-node-allocatable': ['pods', 'kube-reserved'],
  'eviction-hard': ['memory.available<5%', 'nodefs.available<1Gi'],
  'eviction-soft-grace-period': ['memory.available=1m30s'],
  'eviction-pressure-transition-period': ['5m0s'],
  'cpu-manager-policy': ['static'],
  'reserved-cpus': ['0-1'],
  'shutdown-grace-period': ['30s'],
  'shutdown-grace-period-critical-pods': ['10s'],
  'memory-swap-behavior': ['LimitedSwap'],
};

test('converts kubelet arguments of a node group to KubeletConfig fields and back without loss', () => {
  const { config, rest } = kubeletFields(ARGUMENTS);
  assert.deepEqual(rest, {});
  assert.equal(config['maxPods'], 42);
  assert.deepEqual(config['evictionHard'], { 'memory.available': '5%', 'nodefs.available': '1Gi' });
  assert.deepEqual(kubeletArguments(config), { arguments: ARGUMENTS });
  const joined = kubeletFields({ 'eviction-hard': ['memory.available<5%,nodefs.available<1Gi'] });
  assert.deepEqual(joined.config, { evictionHard: { 'memory.available': '5%', 'nodefs.available': '1Gi' } });
});

test('keeps kubelet arguments that have no KubeletConfig field as arguments of the host', () => {
  const own = {
    'manifest-url': ['https://x'],
    'feature-gates': ['A=true'],
    'cgroup-driver': ['systemd'],
    'max-pods': ['many'],
    'eviction-hard': [''],
    'pod-max-pids': ['0'],
    'cpu-manager-policy': ['fast'],
    'seccomp-default': ['true', 'false'],
  };
  assert.deepEqual(kubeletFields(own), { config: {}, rest: own });
});

test('accepts unsupported KubeletConfig fields with zero values, and rejects them with other values', () => {
  const logging = { flushFrequency: 0, options: { json: { infoBufferSize: '0' } }, verbosity: 0 };
  const authentication = { anonymous: {}, webhook: { cacheTTL: '0s' }, x509: {} };
  assert.deepEqual(kubeletArguments({ logging, authentication, maxPods: 100, reservedSystemCPUs: '0' }), {
    arguments: { 'max-pods': ['100'], 'reserved-cpus': ['0'] },
  });
  for (const set of [
    { ...logging, verbosity: 4 },
    { ...logging, options: { json: { infoBufferSize: '1Mi' } } },
  ])
    assert.ok('error' in kubeletArguments({ logging: set }));
});
