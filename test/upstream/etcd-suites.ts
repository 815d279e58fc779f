/** Releases of etcd whose end-to-end suites are run, and their tests that do not apply to this store. */

export type Release = '3.4' | '3.5';

interface EtcdSuite {
  /** Debian release with its sources. */
  readonly debian: string;
  /** Go package that contains etcd's version. */
  readonly versionOf: string;
  /**
   * Programs that are built from the same sources, if Debian's packages are of another release. `etcd` is only for the
   * baseline.
   */
  readonly programs: ReadonlyArray<readonly [name: string, path: string]>;
  /** Lines with which Debian disables tests for its own reasons. */
  readonly reenable?: RegExp;
}

export const SUITES: Readonly<Record<Release, EtcdSuite>> = {
  '3.4': { debian: 'bookworm', versionOf: 'go.etcd.io/etcd/version', programs: [] },
  '3.5': {
    debian: 'sid',
    versionOf: 'go.etcd.io/etcd/api/version',
    programs: [
      ['etcdctl', './etcdctl'],
      ['etcdutl', './etcdutl'],
      ['etcd', './server'],
    ],
    reenable: /t\.Skip\("Debian-disabled/,
  },
};

type LeftOut = ReadonlyArray<readonly [tests: RegExp, reason: string]>;

const V2 = 'the v2 API is not served';
const PROXIES = 'etcd gateway and grpc-proxy are not offered';
const SNAPSHOT = 'etcdctl and etcdutl cannot read a saved snapshot, which is a database of SQLite';
const PEER_NAMES = 'waits for words of Go’s TLS in the log; test/host/store/server.test.ts has who is let in';
const DAMAGE = 'damages a file of bbolt; ours are damaged in test/store and the drills';

/** Excluded tests with a reason. The first match applies. */
export const NOT_FOR_OURS: Readonly<Record<Release, LeftOut>> = {
  '3.4': [
    [/^TestCtlV2|^TestV2|^TestCtlV3Migrate$/, V2],
    [/^TestGateway$|^TestGrpcproxy/, PROXIES],
    [/^TestReleaseUpgrade/, 'upgrades from the release before'],
    [/^TestCtlV3(Auth)?Snapshot(JWT|StatusBeforeRestore)?$|^TestIssue6361$/, SNAPSHOT],
    [/^TestEtcdCorruptHash$/, DAMAGE],
    [/^TestEtcdPeer(CN|Name)Auth$/, PEER_NAMES],
    [/^TestCtlV3Version$/, 'asks etcdctl for its own version'],
    [/^TestCtlV3Alarm$|^TestV3Metrics/, 'compares the whole body of /health, which is etcd 3.5’s here'],
  ],
  '3.5': [
    [/^TestCtlV2|^TestV2|^TestUtlCtlV2Backup$|^TestConnectionMultiplexing$/, V2],
    [/^TestGateway$|^TestGrpc-?proxy/i, PROXIES],
    [
      /^TestReleaseUpgrade|^TestDowngradeUpgrade|MixVersions|^TestIssue20967/,
      'upgrades from the release before, or runs beside it',
    ],
    [
      /^TestCtlV3(Auth)?Snapshot(JWT|Etcdutl|StatusBeforeRestore(Etcdutl)?)?$|^TestIssue6361|^TestCtlV3AuthRecoverFromSnapshot$|^TestRestoreCompactionRevBump$/,
      SNAPSHOT,
    ],
    [/^TestEtcdCorruptHash$|CorruptionInterrupt$|DetectCorruption$|^TestPeriodicCheckDetectsCorruption$/, DAMAGE],
    [/^TestHTTPLivezReadyzHandler$/, `its last part ${DAMAGE}; test/store/services/http.test.ts has what both answer`],
    [
      /^TestCtlV3DefragOffline|^TestForceNewCluster_MemberCount$|^TestCtlV3PromotingLearner$/,
      'reads or writes a file of bbolt while etcd is stopped',
    ],
    [/^TestEtcdPeer(CN|MultiCN|Name)Auth$/, PEER_NAMES],
    [
      /^TestServerJsonLogging$|^TestNoErrorLogsDuringNormalOperations$/,
      'reads each line of the log as JSON, which is written as text',
    ],
    [
      /^TestV3Curl(Txn|ProclaimMissiongLeaderKeyNoTLS|ResignMissiongLeaderKeyNoTLS)$/,
      'was changed for Debian’s own JSON gateway, which reads and writes otherwise than upstream’s',
    ],
  ],
};
