/** Checks of the clock and of time zone data. */
import { dateText, timestamp } from '../../base/time/timestamps.ts';
import { check, error, ok, warning } from './check.ts';

const YEAR_MS = 365 * 24 * 3_600_000;
/** Number of years after the last known time from which the clock counts as wrong. */
const MAX_AHEAD_YEARS = 10;
const TOLERANCE_MS = 30_000;
/**
 * Clock difference that is an error. With a larger one, certificates and leases of one host may be invalid on another
 * host.
 */
const SKEW_ERROR_MS = 30_000;
const SKEW_WARNING_MS = 1_000;

const clockYear = check({
  id: 'clock-year',
  title: 'the clock shows a plausible year',
  group: 'time',
  explanation: 'The clock is later than the release of this program and than the last time known on this host.',
  needs: ['clock'],
  run: ({ clock: { nowMs, releasedMs, floorMs } }) => {
    const earliest = Math.max(releasedMs, floorMs);
    const fix = 'timedatectl set-ntp true || date -u -s "YYYY-MM-DD HH:MM:SS"';
    if (nowMs + TOLERANCE_MS < earliest)
      return [error(`the clock shows ${timestamp(nowMs)}, but the last known time is ${timestamp(earliest)}`, fix)];
    if (nowMs - earliest > MAX_AHEAD_YEARS * YEAR_MS)
      return [
        warning(`the clock shows ${timestamp(nowMs)}, over ${MAX_AHEAD_YEARS} years after ${dateText(earliest)}`, fix),
      ];
    return [ok(timestamp(nowMs))];
  },
});

const clockBattery = check({
  id: 'clock-battery',
  title: 'the host has a clock that continues without power',
  group: 'time',
  explanation: 'A real-time clock exists, or a service synchronizes the clock. Without both it is wrong after a boot.',
  needs: ['clock'],
  run: ({ clock: { clocks, synchronized } }) => {
    if (clocks.length > 0) return [ok(clocks.join(', '))];
    if (synchronized === true) return [ok('no real-time clock; a service synchronizes the clock')];
    return [
      warning(
        'no real-time clock, and no service synchronizes the clock: it is wrong after a boot without network',
        'apt-get install systemd-timesyncd && timedatectl set-ntp true    # or add a clock module: dtoverlay=i2c-rtc,ds3231',
      ),
    ];
  },
});

const clockSynchronized = check({
  id: 'clock-synchronized',
  title: 'a service synchronizes the clock',
  group: 'time',
  explanation: 'systemd-timesyncd, chrony or ntpd has synchronized the clock. Necessary for clusters of several hosts.',
  needs: ['clock', 'ring'],
  run: ({ clock: { synchronized }, ring }) => {
    if (synchronized === true) return [ok('synchronized')];
    const others = ring.filter(({ self }) => !self).length;
    if (others === 0) return [ok('not synchronized; this host has no peers')];
    return [
      warning(
        `${synchronized === false ? 'no service synchronizes the clock' : 'not known whether a service synchronizes the clock'}; ${others} peers compare theirs`,
        'apt-get install systemd-timesyncd && timedatectl set-ntp true',
      ),
    ];
  },
});

const clockSkew = check({
  id: 'clock-skew',
  title: 'the clock agrees with those of the peers',
  group: 'time',
  explanation: 'The difference to the median clock of the gossip ring is below a second; above 30 seconds is an error.',
  needs: ['clock', 'ring'],
  run: ({ clock: { nowMs }, ring }) => {
    const offsetMs = ring.find(({ self }) => self)?.clockOffsetMs;
    if (offsetMs === undefined || ring.length < 2) return [ok('no peer to compare with')];
    const size = Math.abs(offsetMs);
    const evidence = `the clock is ${(size / 1000).toFixed(3)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} its peers`;
    if (size < SKEW_WARNING_MS) return [ok(evidence)];
    const fix = `timedatectl set-ntp true || date -u -s "${timestamp(nowMs - offsetMs)}"`;
    return [size < SKEW_ERROR_MS ? warning(evidence, fix) : error(evidence, fix)];
  },
});

const timeZone = check({
  id: 'time-zone',
  title: 'time zone data exist',
  group: 'time',
  explanation: '/etc/localtime, if present, refers to an existing file. CronJobs with a timeZone use built-in data.',
  needs: ['timeZone'],
  run: ({ timeZone: { link, exists, database } }) => {
    if (link !== undefined && !exists)
      return [
        warning(
          `/etc/localtime refers to ${link}, which does not exist; local times are in UTC`,
          database ? 'ln -sf /usr/share/zoneinfo/UTC /etc/localtime' : 'rm /etc/localtime',
        ),
      ];
    if (!database) return [warning('/usr/share/zoneinfo is missing; only UTC is known', 'apt-get install tzdata')];
    return [ok(link ?? 'UTC')];
  },
});

export const timeChecks = [clockYear, clockBattery, clockSynchronized, clockSkew, timeZone];
