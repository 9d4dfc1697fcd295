# SPDX-License-Identifier: Apache-2.0
import unittest

import flat
import judge


def ledger(role, number, start, text):
    lines = [line.strip() + "\n" for line in text.split("\n") if line.strip()]
    return judge.Ledger(role, number, start, judge.parse("".join(lines)))


# Shard 0 saves at 20, is killed and comes back at 40 without rows 10 to 14.
SHARD = """1 has_all
           2 serving
           20 saving
           21 saved"""
AGAIN = """40 has 0 0 0 9
           40 has_all
           41 serving
           90 has 0 0 0 9
           90 has 0 0 15 29
           90 has_all
           91 end"""
COLLECTOR = """3 begin 7
               19 rows 10 0 1
               30 rows 15 0 1
               50 rows 20 5 2
               80 rows 30 5 2
               81 end 30"""


class JudgeTest(unittest.TestCase):
    def judge(self, shard=SHARD, again=AGAIN, collector=COLLECTOR, more=()):
        return judge.judge([ledger("shard", 0, 0, shard), ledger("shard", 0, 1, again),
                            ledger("collector", 0, 0, collector), *more])

    def assert_finds(self, sentence, **texts):
        faults, _ = self.judge(**texts)
        self.assertIn(sentence, "\n".join(faults))

    def test_a_loss_behind_the_checkpoint_that_is_told_is_right(self):
        faults, report = self.judge()
        self.assertEqual(faults, [])
        self.assertEqual(report, judge.Report(collectors=1, written=30, stored=25, lost=5, said_lost=5))

    def test_a_row_that_is_there_twice(self):
        self.assert_finds("row 9 of producer 0, start 0, behind row 9: it is there twice",
                          again=AGAIN.replace("15 29", "9 29"))

    def test_a_row_that_is_lost_without_a_kill(self):
        self.assert_finds("rows 20 to 20 are lost, though no checkpoint ended there",
                          again=AGAIN.replace("90 has 0 0 15 29", "90 has 0 0 15 19\n90 has 0 0 21 29"))

    def test_a_loss_that_is_not_told(self):
        self.assert_finds("30 were acknowledged and 0 lost; 5 are",
                          collector=COLLECTOR.replace(" 5 2", " 0 2"))

    def test_a_loss_that_is_told_and_is_none(self):
        self.assert_finds("30 were acknowledged and 5 lost; 0 are",
                          again=AGAIN.replace("90 has 0 0 15 29", "90 has 0 0 10 29"))

    def test_rows_that_were_saved_and_do_not_come_back(self):
        self.assert_finds("start 1 of shard 0 has not rows [(8, 10)]",
                          again=AGAIN.replace("0 9", "0 7"))

    def test_rows_of_a_checkpoint_that_vanish_later(self):
        self.assert_finds("rows [(5, 10)] of producer 0, start 0, were in a checkpoint",
                          again=AGAIN.replace("90 has 0 0 0 9", "90 has 0 0 0 4"))

    def test_the_last_rows_of_a_collector_that_ended_in_order(self):
        self.assert_finds("wrote 30 rows", again=AGAIN.replace("15 29", "15 28"))
        self.assert_finds("wrote 31 rows", collector=COLLECTOR.replace("end 30", "end 31"))

    def test_a_killed_collector_may_leave_rows_that_nobody_acknowledged(self):
        killed = COLLECTOR.replace("81 end 30", "")
        self.assertEqual(self.judge(collector=killed, again=AGAIN.replace("15 29", "15 33"))[0], [])
        self.assert_finds("says that 5 rows were lost, but 0 are", collector=killed,
                          again=AGAIN.replace("90 has 0 0 15 29", "90 has 0 0 10 29"))

    def test_a_learner_that_forgets(self):
        learner = [ledger("learner", 0, 0, "1 resumed 0\n5 saved 7"), ledger("learner", 0, 1, "9 resumed 6")]
        self.assert_finds("learner 0 goes on from batch 6, though 7 was saved", more=learner)

    def test_weights_that_get_older(self):
        self.assert_finds("took older weights", collector=COLLECTOR.replace("30 rows 15 0 1", "30 rows 15 0 9"))

    def test_a_shard_that_did_not_end(self):
        self.assert_finds("shard 0 did not end in order", again=AGAIN.replace("91 end", ""))

    def test_in_a_ring_old_rows_go(self):
        shards = [ledger("shard", 0, 0, SHARD), ledger("shard", 0, 1, AGAIN.replace("90 has 0 0 0 9", ""))]
        self.assertEqual(judge.judge(shards, is_ring=True)[0], [])


class FlatTest(unittest.TestCase):
    def test_what_goes_up_and_down_is_flat(self):
        self.assertEqual(flat.growth([(50000 + 500 * (i % 5), 30 + i % 3, 12) for i in range(90)]), [])

    def test_medians_are_told(self):
        self.assertEqual(flat.summary([(100 * i, 7, 3) for i in range(9)]),
                         "memory in KiB 400 to 700, descriptors 7 to 7, threads 3 to 3")

    def test_a_leak_is_named(self):
        for i, name in enumerate(flat.NAMES):
            samples = [[50000, 30, 12] for _ in range(90)]
            for n, one in enumerate(samples):
                one[i] += n * (200 if i == 0 else 1)
            faults = flat.growth(samples)
            self.assertEqual(len(faults), 1)
            self.assertIn(name, faults[0])
