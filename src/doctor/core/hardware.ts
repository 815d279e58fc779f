/** Checks of memory, processor, temperature and power. */
import type { Finding } from '../port.ts';
import { bytesText, check, error, ok, orOk, percent, skipped, warning } from './check.ts';

const MASTER_BYTES = 900 * 1024 * 1024;
const NODE_BYTES = 400 * 1024 * 1024;
const AVAILABLE_SHARE = 0.08;
const FULL_PRESSURE_PERCENT = 10;

const memory = check({
  id: 'memory',
  title: 'the host has enough memory',
  group: 'hardware',
  preflight: true,
  explanation:
    'A master needs 1 GiB, a node 512 MiB. Less than 8 % available, or tasks that wait for it, is a warning.',
  needs: ['memory', 'host'],
  run: ({ memory: { totalBytes, availableBytes, fullPercent }, host }) => {
    const least = host.roles.includes('master') ? MASTER_BYTES : NODE_BYTES;
    const findings: Finding[] = [];
    if (totalBytes < least)
      findings.push(
        warning(
          `${bytesText(totalBytes)} of memory; the roles ${host.roles.join(', ')} need ${bytesText(least)}`,
          'hyperedge install --roles node    # and run the control plane on another host',
        ),
      );
    if (availableBytes < totalBytes * AVAILABLE_SHARE)
      findings.push(
        warning(
          `${bytesText(availableBytes)} of ${bytesText(totalBytes)} available (${percent(availableBytes / totalBytes)})`,
          'ps -eo rss,pid,comm --sort=-rss | head -15',
        ),
      );
    if (fullPercent !== undefined && fullPercent > FULL_PRESSURE_PERCENT)
      findings.push(
        warning(`all tasks waited for memory in ${fullPercent} % of the last minute`, 'cat /proc/pressure/memory'),
      );
    return orOk(findings, `${bytesText(availableBytes)} of ${bytesText(totalBytes)} available`);
  },
});

/** Swap on a disk wears out flash memory. Swap in compressed memory (zram) does not. */
const swap = check({
  id: 'swap',
  title: 'swap does not delay pods or wear out flash memory',
  group: 'hardware',
  explanation: 'No swap space on a disk is in use for more than half. Compressed memory (zram) passes.',
  needs: ['memory'],
  run: ({ memory: { swaps } }) => {
    const findings = swaps.flatMap(({ device, bytes, usedBytes }) => {
      if (/\/zram\d+$/.test(device) || usedBytes <= bytes / 2) return [];
      return [
        warning(
          `${device}: ${bytesText(usedBytes)} of ${bytesText(bytes)} swap space in use`,
          "swapoff -a && sed -i '/\\sswap\\s/s/^/#/' /etc/fstab    # Raspberry Pi: dphys-swapfile swapoff && systemctl disable dphys-swapfile",
        ),
      ];
    });
    const evidence = swaps.length === 0 ? 'no swap' : swaps.map(({ device }) => device).join(', ');
    return orOk(findings, evidence);
  },
});

const cpuFrequency = check({
  id: 'cpu-frequency',
  title: 'the processor may run at its full frequency',
  group: 'hardware',
  explanation:
    'The limit of each frequency policy is at least 60 % of the hardware’s, and the governor is not powersave.',
  needs: ['processor'],
  run: ({ processor: { policies } }) => {
    if (policies.length === 0) return [skipped('the kernel does not control the frequency of the processor')];
    const findings = policies.flatMap(({ name, limitKhz, maxKhz, governor }) => {
      const limited = limitKhz > 0 && maxKhz > 0 && limitKhz < 0.6 * maxKhz;
      if (!limited) return [];
      const evidence = `${name} (${governor}) is limited to ${limitKhz / 1000} of ${maxKhz / 1000} MHz`;
      return [
        warning(
          evidence,
          `for f in /sys/devices/system/cpu/cpufreq/policy*; do cat $f/cpuinfo_max_freq > $f/scaling_max_freq; done`,
        ),
      ];
    });
    return orOk(findings, policies.map(({ name, governor }) => `${name} ${governor}`).join(', '));
  },
});

const thermal = check({
  id: 'thermal',
  title: 'the processor is not slowed down by heat',
  group: 'hardware',
  explanation: 'No temperature is at its throttling point, and the processor has not been throttled since the boot.',
  needs: ['processor', 'power'],
  run: ({ processor: { zones, throttleCount }, power: { throttled = 0 } }) => {
    const fix = 'add a heat sink or a fan, and clear the vents; then: cat /sys/class/thermal/thermal_zone*/temp';
    const findings: Finding[] = zones.flatMap(({ name, celsius, passiveCelsius, criticalCelsius }) => {
      if (criticalCelsius !== undefined && celsius >= criticalCelsius - 5)
        return [error(`${name}: ${celsius} °C, 5 °C below the emergency power-off or hotter`, fix)];
      return passiveCelsius !== undefined && celsius >= passiveCelsius
        ? [warning(`${name}: ${celsius} °C, throttled from ${passiveCelsius} °C on`, fix)]
        : [];
    });
    if ((throttled & 0b1110) !== 0) findings.push(warning('the firmware throttles the processor now', fix));
    else if ((throttled & 0b1110_0000_0000_0000_0000) !== 0)
      findings.push(warning('the firmware has throttled the processor since the boot', fix));
    if (throttleCount > 0 && findings.length === 0)
      findings.push(warning(`the processor was throttled ${throttleCount} times since the boot`, fix));
    if (findings.length > 0) return findings;
    if (zones.length === 0) return [skipped('no temperature sensor')];
    return [ok(`at most ${Math.max(...zones.map(({ celsius }) => celsius))} °C`)];
  },
});

const underVoltage = check({
  id: 'under-voltage',
  title: 'the power supply is sufficient',
  group: 'hardware',
  explanation: 'Raspberry Pi: the firmware has not detected a voltage below 4.63 V since the boot.',
  needs: ['power'],
  run: ({ power: { throttled, alarm } }) => {
    if (throttled === undefined && alarm === undefined) return [skipped('no voltage monitor (not a Raspberry Pi)')];
    const fix = 'use the official power supply and a short cable; move USB disks to a powered hub; then reboot';
    if (alarm === true || ((throttled ?? 0) & 1) !== 0) return [error('the supply voltage is too low now', fix)];
    if (((throttled ?? 0) & 0x1_0000) !== 0) return [warning('the supply voltage was too low since the boot', fix)];
    return [ok('no under-voltage since the boot')];
  },
});

export const hardwareChecks = [memory, swap, cpuFrequency, thermal, underVoltage];
